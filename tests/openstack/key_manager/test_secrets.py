"""Secrets, orders and containers of Barbican, on the simulated cloud: the real control plane has none."""

from __future__ import annotations

import base64

import pytest

from orchestrator.clients.openstack.platform_services.key_manager import CONTAINERS, ORDERS, SECRETS
from orchestrator.lookups.kinds import LookupFault, look_up
from simulated_openstack.cloud import SimulatedCloud
from tests.openstack.conftest import DIRECTORY
from tests.openstack.driver import Driver
from tests.openstack.network.ground import lives

pytestmark = pytest.mark.skipif(bool(DIRECTORY), reason="the control plane has no Barbican")


def test_a_secret_is_created_read_and_deleted(driver: Driver) -> None:
    secret = lives(driver, "OS::Barbican::Secret", {"payload": "pässword", "secret_type": "passphrase"})
    attributes = driver.attributes(secret, "decrypted_payload", "show")
    assert (attributes["status"], attributes["decrypted_payload"]) == ("ACTIVE", "pässword")
    assert "pässword" not in str(attributes["show"])
    assert look_up(driver.openstack, "barbican.secret", secret) == secret
    driver.delete(secret)
    assert driver.openstack.key_manager.find(SECRETS, secret) is None
    with pytest.raises(LookupFault, match="could not be found"):
        look_up(driver.openstack, "barbican.secret", secret)


def test_a_binary_content_is_read_in_base64(driver: Driver) -> None:
    payload = base64.b64encode(b"\xff\xfe").decode()
    given = {
        "name": driver.name(),
        "payload": payload,
        "payload_content_type": "application/octet-stream",
        "payload_content_encoding": "base64",
    }
    secret = lives(driver, "OS::Barbican::Secret", given)
    assert driver.attributes(secret, "decrypted_payload")["decrypted_payload"] == payload


def test_a_secret_without_a_content_has_none(driver: Driver) -> None:
    secret = driver.create("OS::Barbican::Secret", {"algorithm": "aes", "bit_length": 256})
    assert driver.attributes(secret, "decrypted_payload")["decrypted_payload"] is None


def test_an_order_generates_a_key_that_stays(driver: Driver) -> None:
    given = {"type": "key", "algorithm": "aes", "bit_length": 256, "mode": "cbc"}
    order = lives(driver, "OS::Barbican::Order", given)
    attributes = driver.attributes(order)
    assert (attributes["status"], attributes["order_ref"]) == ("ACTIVE", order)
    driver.delete(order)
    barbican = driver.openstack.key_manager
    assert barbican.find(ORDERS, order) is None
    assert barbican.remove(SECRETS, attributes["secret_ref"])


def test_an_order_generates_a_pair_of_keys(driver: Driver) -> None:
    given = {"type": "asymmetric", "algorithm": "rsa", "bit_length": 2048, "pass_phrase": "s3cret"}
    order = lives(driver, "OS::Barbican::Order", given)
    attributes = driver.attributes(order, "public_key", "private_key", "certificate", "show")
    assert attributes["public_key"].startswith("-----BEGIN PUBLIC KEY-----")
    assert attributes["private_key"].startswith("-----BEGIN PRIVATE KEY-----")
    assert attributes["certificate"] is None
    assert "s3cret" not in str(attributes["show"])
    barbican = driver.openstack.key_manager
    for one in (barbican.find(CONTAINERS, attributes["container_ref"]) or {})["secret_refs"]:
        barbican.remove(SECRETS, one["secret_ref"])
    barbican.remove(CONTAINERS, attributes["container_ref"])


def test_an_order_that_fails_fails_the_resource(driver: Driver, simulated_cloud: SimulatedCloud) -> None:
    simulated_cloud.faults.set({"order": {"error": "no entropy", "times": 1}})
    given = {"type": "key", "algorithm": "aes", "bit_length": 256}
    with pytest.raises(AssertionError, match="Order 'a' failed: 400 - no entropy"):
        driver.create("OS::Barbican::Order", given)
    simulated_cloud.faults.set({})


def test_containers_name_secrets(driver: Driver) -> None:
    first, second = (driver.create("OS::Barbican::Secret", {"payload": text}) for text in ("a", "b"))
    for type_name, given, names in (
        ("GenericContainer", {"secrets": [{"name": "x", "ref": first}]}, {"x": first}),
        (
            "CertificateContainer",
            {"certificate_ref": first, "private_key_ref": second},
            {"certificate": first, "private_key": second},
        ),
        ("RSAContainer", {"public_key_ref": first}, {"public_key": first}),
    ):
        container = lives(driver, f"OS::Barbican::{type_name}", given)
        attributes = driver.attributes(container)
        assert (attributes["secret_refs"], attributes["container_ref"]) == (names, container)
        assert (attributes["status"], attributes["consumers"]) == ("ACTIVE", [])
        driver.delete(container)
