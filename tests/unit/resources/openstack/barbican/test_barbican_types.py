"""The types of Barbican."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orchestrator.errors import ProviderError
from orchestrator.resources.base import Context, ResourceType
from orchestrator.resources.openstack.barbican.certificate_container import CertificateContainer
from orchestrator.resources.openstack.barbican.generic_container import GenericContainer
from orchestrator.resources.openstack.barbican.order import Order
from orchestrator.resources.openstack.barbican.rsa_container import RSAContainer
from orchestrator.resources.openstack.barbican.secret import Secret
from orchestrator.template.definition import ResourceDefinition
from orchestrator.testing.scripted_cloud import ScriptedCloud

BASE = "https://elsewhere:9311/v1"  # the host in URLs is a setting of Barbican
SECRET, ORDER, CONTAINER = f"{BASE}/secrets/s1", f"{BASE}/orders/o1", f"{BASE}/containers/c1"
KEY = {"type": "key", "algorithm": "aes", "bit_length": 256}


@pytest.fixture
def script() -> ScriptedCloud:
    return ScriptedCloud()


def context(kind: ResourceType, script: ScriptedCloud, action: str = "CREATE", **given: Any) -> Context:
    properties, faults = kind.read_properties(given)
    assert faults == []
    return Context(
        name="it",
        physical_name="stack-it-abc",
        token="00000000-1",
        action=action,
        properties=properties,
        cloud=script.cloud,
    )


def faults(kind: ResourceType, **given: Any) -> list[str]:
    definition = ResourceDefinition("it", kind.name, {"properties": given}, frozenset(), {}, frozenset())
    properties, _ = kind.read_properties(given)
    found = [*kind.validate(properties, 60.0), *kind.validate_among("it", properties, {"it": definition})]
    return [fault.message for fault in found]


def created(kind: ResourceType, script: ScriptedCloud, ref: str, **given: Any) -> dict[str, Any]:
    """Return the body of the request that creates an object."""
    path = f"/{ref.split('/')[-2]}"
    script.answers("POST", path, {f"{path[1:-1]}_ref": ref}, status=201)
    ctx = context(kind, script, **given)
    assert kind.create(ctx, ctx.properties).physical_id == ref
    body: dict[str, Any] = script.sent("POST")[0].body
    return body


class TestSecrets:
    def test_every_property_is_sent_and_the_physical_name_is_the_default(self, script):
        given = {
            "payload": "YQ==",
            "payload_content_type": "application/octet-stream",
            "payload_content_encoding": "base64",
            "secret_type": "symmetric",
            "expiration": "2099-01-01T00:00:00",
            "algorithm": "aes",
            "bit_length": 8,
            "mode": "cbc",
        }
        assert created(Secret(), script, SECRET, **given) == {"name": "stack-it-abc", **given}

    def test_a_content_is_a_text_by_default(self, script):
        assert created(Secret(), script, SECRET, payload="x", name="n") == {
            "name": "n",
            "payload": "x",
            "payload_content_type": "text/plain",
            "secret_type": "opaque",
        }

    def test_requests_go_to_the_endpoint_of_the_catalog(self, script):
        kind = Secret()
        script.answers("GET", "/secrets/s1", {"status": "ACTIVE"})
        script.answers("DELETE", "/secrets/s1", status=204)
        ctx = context(kind, script, "CHECK")
        assert kind.observe(ctx, SECRET).attributes == {"status": "ACTIVE"}
        kind.delete(ctx, SECRET)
        script.answers("GET", "/secrets/s1", {"code": 404, "description": "gone"}, status=404)
        assert not kind.observe(ctx, SECRET).exists

    def test_the_content_is_a_secret_that_is_read_on_demand(self, script):
        kind = Secret()
        attribute = kind.attributes["decrypted_payload"]
        assert (attribute.secret, attribute.live) == (True, True)
        script.answers(
            "GET", "/secrets/s1", {"secret_ref": SECRET, "content_types": {"default": "text/plain"}}
        )
        script.answers("GET", "/secrets/s1/payload", "pass", headers={"Content-Type": "text/plain"})
        ctx = context(kind, script, "CHECK")
        assert "show" not in kind.read_attributes(ctx, SECRET, frozenset({"decrypted_payload"}))
        (request,) = script.sent("GET", ".*/payload")
        assert request.headers["Accept"] == "text/plain"
        assert list(kind.read_attributes(ctx, SECRET, frozenset({"show"}))) == ["show"]

    def test_the_secret_of_a_lost_response_is_found_by_name_values_and_time(self, script):
        kind = Secret()
        ctx = context(kind, script, algorithm="aes")
        now = datetime.now(UTC).replace(tzinfo=None)
        secret = {"name": "stack-it-abc", "secret_type": "opaque", "algorithm": "aes", "bit_length": None}
        others = (
            {**secret, "created": (now - timedelta(hours=1)).isoformat()},
            {**secret, "name": "stack-it-abc-2"},
            {**secret, "algorithm": "des"},
        )
        listed = [{**one, "secret_ref": f"{BASE}/secrets/x{n}"} for n, one in enumerate(others)]
        target = r"/secrets\?limit=100&name=stack-it-abc"
        script.answers("GET", target, {"secrets": listed, "total": 3})
        assert kind.find(ctx, ctx.token) is None
        own = [{**secret, "secret_ref": f"{BASE}/secrets/y{n}", "created": now.isoformat()} for n in (1, 2)]
        script.answers("GET", target, {"secrets": [*listed, *own], "total": 5})
        assert kind.find(ctx, ctx.token) == f"{BASE}/secrets/y1"  # a second one is never deleted

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (
                {"payload_content_type": "text/plain"},
                "payload_content_type cannot be specified without payload.",
            ),
            (
                {"payload": "x", "payload_content_type": "application/octet-stream"},
                "Property unspecified. For 'application/octet-stream' value of 'payload_content_type' "
                "property, 'payload_content_encoding' property must be specified.",
            ),
            (
                {
                    "payload": "x",
                    "payload_content_type": "application/octet-stream",
                    "payload_content_encoding": "base64",
                },
                "Invalid payload for specified 'base64' value of 'payload_content_encoding' property.",
            ),
            (
                {"payload": "x", "payload_content_encoding": "base64"},
                "payload_content_encoding property should only be specified for payload_content_type with "
                "value application/octet-stream.",
            ),
        ],
    )
    def test_content_type_and_encoding_belong_together(self, given, message):
        assert faults(Secret(), **given) == [message]

    def test_a_content_that_is_not_known_yet_counts_as_given(self):
        kind = Secret()
        given = {"payload": {"get_attr": ["x", "y"]}, "payload_content_type": "text/plain"}
        definition = ResourceDefinition("it", kind.name, {"properties": given}, frozenset(), {}, frozenset())
        assert kind.validate_among("it", {"payload_content_type": "text/plain"}, {"it": definition}) == []


class TestOrders:
    def test_an_order_has_its_values_in_its_meta_data(self, script):
        assert created(Order(), script, ORDER, **KEY) == {
            "type": "key",
            "meta": {"name": "stack-it-abc", "algorithm": "aes", "bit_length": 256},
        }

    def test_it_is_ready_when_it_is_active(self, script):
        kind = Order()
        ctx = context(kind, script, **KEY)
        script.answers("GET", "/orders/o1", {"status": "PENDING"})
        assert not kind.observe(ctx, ORDER).ready
        script.answers("GET", "/orders/o1", {"status": "ACTIVE", "secret_ref": SECRET})
        observation = kind.observe(ctx, ORDER)
        assert observation.ready
        assert observation.attributes["secret_ref"] == SECRET

    def test_an_order_in_error_fails(self, script):
        kind = Order()
        ctx = context(kind, script, **KEY)
        failed = {"status": "ERROR", "error_status_code": "400", "error_reason": "no entropy"}
        script.answers("GET", "/orders/o1", failed)
        observation = kind.observe(ctx, ORDER)
        assert observation.error == "Order 'it' failed: 400 - no entropy"
        assert not observation.replaceable
        assert not kind.observe(context(kind, script, "DELETE", **KEY), ORDER).error

    def test_the_order_of_a_lost_response_is_found(self, script):
        kind = Order()
        ctx = context(kind, script, **KEY)
        meta = {"name": "stack-it-abc", "algorithm": "aes", "bit_length": 256, "mode": None}
        orders = [
            {"order_ref": f"{BASE}/orders/x", "type": "asymmetric", "meta": meta},
            {"order_ref": ORDER, "type": "key", "meta": meta},
        ]
        script.answers("GET", r"/orders\?limit=100", {"orders": orders})
        assert kind.find(ctx, ctx.token) == ORDER

    def test_only_the_private_key_is_a_secret(self):
        assert [name for name, one in Order.attributes.items() if one.secret] == ["private_key"]

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (
                {"type": "key", "algorithm": "aes"},
                "Properties algorithm and bit_length are required for key type of order.",
            ),
            (
                {"type": "certificate", "profile": "x"},
                "profile cannot be specified without ca_id.",
            ),
            (
                {**KEY, "pass_phrase": "x"},
                "Unexpected properties: pass_phrase. Only these properties are allowed for key type of "
                "order: algorithm, bit_length, expiration, mode, name, payload_content_type.",
            ),
        ],
    )
    def test_each_type_of_order_has_its_properties(self, given, message):
        assert faults(Order(), **given) == [message]


class TestContainers:
    def test_a_generic_container_has_any_names(self, script):
        secrets = [{"name": "a", "ref": SECRET}]
        assert created(GenericContainer(), script, CONTAINER, secrets=secrets, name="n") == {
            "name": "n",
            "type": "generic",
            "secret_refs": [{"name": "a", "secret_ref": SECRET}],
        }

    def test_the_names_of_other_containers_are_properties(self, script):
        body = created(CertificateContainer(), script, CONTAINER, certificate_ref="x", intermediates_ref="y")
        assert (body["type"], body["secret_refs"]) == (
            "certificate",
            [{"name": "certificate", "secret_ref": "x"}, {"name": "intermediates", "secret_ref": "y"}],
        )
        assert RSAContainer.container_type == "rsa"

    @pytest.mark.parametrize(
        ("kind", "given"),
        [
            (GenericContainer(), {"secrets": [{"name": "a", "ref": "x"}, {"name": "b", "ref": "x"}]}),
            (RSAContainer(), {"public_key_ref": "x", "private_key_ref": "x"}),
        ],
    )
    def test_a_secret_has_one_name(self, kind, given):
        assert faults(kind, **given) == ["Duplicate refs are not allowed."]

    def test_a_container_in_error_is_created_again(self, script):
        kind = RSAContainer()
        failed = {"status": "ERROR", "error_status_code": 500, "error_reason": "x"}
        script.answers("GET", "/containers/c1", failed)
        observation = kind.observe(context(kind, script), CONTAINER)
        assert observation.replaceable
        assert "Container 'it' creation failed: 500 - x" in observation.error


@pytest.mark.parametrize("kind", [Secret(), Order(), GenericContainer(), CertificateContainer()])
def test_every_change_replaces(kind):
    assert all(kind.change({}, {}, frozenset({name})) == "replace" for name in kind.properties)


def test_errors_have_barbicans_description(script):
    kind = Secret()
    script.answers("POST", "/secrets", {"code": 400, "description": "Bad payload"}, status=400)
    ctx = context(kind, script)
    with pytest.raises(ProviderError, match="Bad payload"):
        kind.create(ctx, ctx.properties)
