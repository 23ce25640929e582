"""Lists and reports that dashboards and command line clients request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from cloud_client import signed_in
from simulated_openstack.cloud import SimulatedCloud

LATEST = {"OpenStack-API-Version": "volume latest"}
PERIOD = "start=2020-01-01T00:00:00&end=2100-01-01T00:00:00"


@pytest.fixture
def admin(cloud: SimulatedCloud) -> Iterator[httpx.Client]:
    """A client of an administrator."""
    client, _ = signed_in(cloud.variables("admin"))
    with client:
        yield client


@pytest.fixture
def member(cloud: SimulatedCloud) -> Iterator[httpx.Client]:
    """A client of a plain member of the project."""
    client, _ = signed_in(cloud.variables("demo"))
    with client:
        yield client


def project_id(cloud: SimulatedCloud, name: str = "demo") -> str:
    project = cloud.keystone.projects.named(name)
    assert project is not None
    return str(project["id"])


def new_server(cloud: SimulatedCloud, client: httpx.Client) -> str:
    flavor = cloud.nova.flavors.table
    [flavor_id] = [row["id"] for row in flavor if row["name"] == "m1.small"]
    [image_id] = [row["id"] for row in cloud.glance.images.table if row["name"] == "cirros"]
    body = {"server": {"name": "one", "flavorRef": flavor_id, "imageRef": image_id, "networks": "none"}}
    headers = {"OpenStack-API-Version": "compute 2.40"}
    answer = client.post(f"{cloud.nova.base}/v2.1/servers", json=body, headers=headers).raise_for_status()
    return str(answer.json()["server"]["id"])


def new_volume(cloud: SimulatedCloud, client: httpx.Client) -> str:
    answer = client.post(f"{cloud.cinder.base}/v3/volumes", json={"volume": {"size": 2, "name": "one"}})
    return str(answer.raise_for_status().json()["volume"]["id"])


def test_usage_of_a_project_counts_its_servers(cloud: SimulatedCloud, member: httpx.Client) -> None:
    url = f"{cloud.nova.base}/v2.1/os-simple-tenant-usage/{project_id(cloud)}?{PERIOD}"
    assert member.get(url).json() == {"tenant_usage": {}}
    server = new_server(cloud, member)
    try:
        usage = member.get(url).json()["tenant_usage"]
        [row] = usage["server_usages"]
        assert (row["instance_id"], row["vcpus"], row["memory_mb"], row["local_gb"]) == (server, 1, 2_048, 20)
        assert 0 <= usage["total_hours"] == row["hours"] < 1
        headers = {"OpenStack-API-Version": "compute 2.40"}
        assert member.get(f"{url}&marker={server}", headers=headers).json() == {"tenant_usage": {}}
    finally:
        member.delete(f"{cloud.nova.base}/v2.1/servers/{server}")


def test_usage_of_all_projects_is_for_administrators(
    cloud: SimulatedCloud, admin: httpx.Client, member: httpx.Client
) -> None:
    url = f"{cloud.nova.base}/v2.1/os-simple-tenant-usage"
    assert member.get(url).status_code == 403
    assert member.get(f"{url}/{project_id(cloud, 'admin')}").status_code == 403
    server = new_server(cloud, member)
    try:
        [usage] = admin.get(f"{url}?{PERIOD}&detailed=1").json()["tenant_usages"]
        assert usage["tenant_id"] == project_id(cloud)
        assert [row["instance_id"] for row in usage["server_usages"]] == [server]
    finally:
        member.delete(f"{cloud.nova.base}/v2.1/servers/{server}")
    assert admin.get(f"{url}?start=2026-01-02&end=2026-01-01").status_code == 400


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("attachments/detail", "attachments"),
        ("backups/detail", "backups"),
        ("consistencygroups/detail", "consistencygroups"),
        ("group_snapshots/detail", "group_snapshots"),
        ("group_types", "group_types"),
        ("groups/detail", "groups"),
        ("messages", "messages"),
        ("os-services", "services"),
        ("os-volume-transfer/detail", "transfers"),
        ("qos-specs", "qos_specs"),
        ("resource_filters", "resource_filters"),
        ("scheduler-stats/get_pools?detail=True", "pools"),
        ("snapshots/detail", "snapshots"),
        ("types", "volume_types"),
        ("volume-transfers", "transfers"),
        ("volume-transfers/detail", "transfers"),
        ("volumes/detail", "volumes"),
    ],
)
def test_cinder_has_its_lists(cloud: SimulatedCloud, admin: httpx.Client, path: str, key: str) -> None:
    answer = admin.get(f"{cloud.cinder.base}/v3/{path}", headers=LATEST)
    assert answer.status_code == 200
    assert isinstance(answer.json()[key], list)


def test_lists_of_cinder_have_their_first_version(cloud: SimulatedCloud, admin: httpx.Client) -> None:
    url = f"{cloud.cinder.base}/v3/groups"
    assert admin.get(url, headers={"OpenStack-API-Version": "volume 3.12"}).status_code == 404
    assert admin.get(url, headers={"OpenStack-API-Version": "volume 3.13"}).json() == {"groups": []}


def test_a_volume_moves_to_the_project_that_knows_the_key(
    cloud: SimulatedCloud, admin: httpx.Client, member: httpx.Client
) -> None:
    volume, root = new_volume(cloud, member), f"{cloud.cinder.base}/v3/volume-transfers"
    body = {"transfer": {"volume_id": volume, "name": "gift"}}
    transfer = member.post(root, json=body).raise_for_status().json()["transfer"]
    assert status_of(cloud, member, volume) == "awaiting-transfer"
    assert member.post(root, json=body).status_code == 400
    assert [row["id"] for row in member.get(root).json()["transfers"]] == [transfer["id"]]
    assert "auth_key" not in member.get(f"{root}/{transfer['id']}").json()["transfer"]
    other, _ = signed_in(cloud.variables("admin") | {"OS_PROJECT_NAME": "admin"})
    with other:
        accept = f"{root}/{transfer['id']}/accept"
        assert other.post(accept, json={"accept": {"auth_key": "wrong"}}).status_code == 400
        given = {"accept": {"auth_key": transfer["auth_key"]}}
        assert other.post(accept, json=given).status_code == 202
        listed: Any = other.get(f"{cloud.cinder.base}/v3/volumes").json()["volumes"]
        assert [row["id"] for row in listed] == [volume]
        assert other.delete(f"{cloud.cinder.base}/v3/volumes/{volume}").status_code == 202
    assert member.get(root).json()["transfers"] == []


def test_a_withdrawn_transfer_frees_the_volume(cloud: SimulatedCloud, member: httpx.Client) -> None:
    volume, root = new_volume(cloud, member), f"{cloud.cinder.base}/v3/volume-transfers"
    body = {"transfer": {"volume_id": volume}}
    transfer = member.post(root, json=body).raise_for_status().json()["transfer"]
    assert member.delete(f"{root}/{transfer['id']}").status_code == 202
    assert status_of(cloud, member, volume) == "available"
    member.delete(f"{cloud.cinder.base}/v3/volumes/{volume}").raise_for_status()


def status_of(cloud: SimulatedCloud, client: httpx.Client, volume: str) -> str:
    return str(client.get(f"{cloud.cinder.base}/v3/volumes/{volume}").json()["volume"]["status"])


def test_volumes_have_a_summary(cloud: SimulatedCloud, member: httpx.Client) -> None:
    volume = new_volume(cloud, member)
    summary = member.get(f"{cloud.cinder.base}/v3/volumes/summary").json()["volume-summary"]
    assert (summary["total_count"], summary["total_size"]) == (1, 2)
    member.delete(f"{cloud.cinder.base}/v3/volumes/{volume}").raise_for_status()


def test_neutron_has_a_service_provider(cloud: SimulatedCloud, member: httpx.Client) -> None:
    url = f"{cloud.neutron.base}/v2.0/service-providers"
    assert member.get(f"{url}?service_type=VPN").json() == {"service_providers": []}
    [provider] = member.get(url).json()["service_providers"]
    assert (provider["service_type"], provider["default"]) == ("L3_ROUTER_NAT", True)
    types = member.get(f"{cloud.neutron.base}/v2.0/qos/rule-types").json()["rule_types"]
    assert {"type": "bandwidth_limit"} in types


def test_quotas_of_all_projects_are_listed_for_administrators(
    cloud: SimulatedCloud, admin: httpx.Client, member: httpx.Client
) -> None:
    for url in (f"{cloud.neutron.base}/v2.0/quotas", f"{cloud.octavia.base}/v2/lbaas/quotas"):
        assert member.get(url).status_code == 403
        assert admin.get(url).status_code == 200
    [row] = admin.get(f"{cloud.neutron.base}/v2.0/quotas").json()["quotas"]
    assert row["project_id"] == project_id(cloud)


def test_images_have_a_usual_format(cloud: SimulatedCloud, member: httpx.Client) -> None:
    images = member.get(f"{cloud.glance.base}/v2/images").json()["images"]
    assert {image["disk_format"] for image in images} == {"qcow2"}
