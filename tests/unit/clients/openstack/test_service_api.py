"""Requests to OpenStack's services, with a scripted transport."""

from __future__ import annotations

import pytest

from orchestrator.clients.openstack.cloud import OpenStack
from orchestrator.clients.openstack.service_api import IMAGE_PATCH
from orchestrator.clients.openstack.transport import Answer
from orchestrator.errors import (
    ProviderBusy,
    ProviderConflict,
    ProviderError,
    ProviderFailed,
    ProviderGatewayFailed,
    ProviderNotFound,
    ProviderQuotaExceeded,
)
from orchestrator.testing.scripted_cloud import ScriptedCloud

VOLUMES = "VolumeLimitExceeded: Maximum number of volumes allowed (1) exceeded for quota 'volumes'."


@pytest.fixture
def script() -> ScriptedCloud:
    return ScriptedCloud()


@pytest.fixture
def cloud(script: ScriptedCloud) -> OpenStack:
    return OpenStack(script.cloud)


def test_a_list_is_read_page_by_page(script: ScriptedCloud, cloud: OpenStack) -> None:
    following = {"rel": "next", "href": "http://nova/v2.1/servers?limit=500&marker=b"}
    script.answers(
        "GET",
        r"/servers/detail\?limit=500&name=x",
        {"servers": [{"id": "a"}, {"id": "b"}], "servers_links": [following]},
    )
    script.answers("GET", r"/servers/detail\?limit=500&name=x&marker=b", {"servers": [{"id": "c"}]})
    listed = cloud.compute.listed("/servers/detail", "servers", {"name": "x"})
    assert [server["id"] for server in listed] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "first",
    [
        {"images": [{"id": 1}], "next": "/v2/images?marker=1"},
        {"images": [{"id": 1}], "links": {"next": "x?marker=1"}},
    ],
)
def test_other_services_link_the_next_page_elsewhere(
    script: ScriptedCloud, cloud: OpenStack, first: dict[str, object]
) -> None:
    script.answers("GET", "/images", first)
    script.answers("GET", r"/images\?marker=1", {"images": [{"id": 2}]})
    assert len(list(cloud.image.listed("/images", "images", page=None))) == 2


def test_a_list_that_links_to_itself_ends(script: ScriptedCloud, cloud: OpenStack) -> None:
    script.answers("GET", "/images.*", {"images": [{"id": 1}], "next": "/v2/images?marker=1"})
    assert len(list(cloud.image.listed("/images", "images"))) == 2


def test_queries_repeat_lists_and_omit_none(script: ScriptedCloud, cloud: OpenStack) -> None:
    script.answers("GET", r"/ports\?id=a&id=b", {"ports": []})
    cloud.network.get("/ports", {"id": ["a", "b"], "name": None})


def test_a_microversion_is_that_of_the_request(script: ScriptedCloud, cloud: OpenStack) -> None:
    script.answers("DELETE", "/x", status=204)
    script.answers("GET", ".*", {})
    cloud.compute.delete("/x", microversion="2.52")
    list(cloud.compute.listed("/y", "y", microversion="2.96"))
    assert [request.microversion for request in script.requests] == ["2.52", "2.96"]


def test_the_newest_microversion_of_the_service_is_found(script: ScriptedCloud, cloud: OpenStack) -> None:
    script.microversions = ("2.1", "2.60")
    assert cloud.compute.newest("2.96", "2.60", "2.1") == "2.60"
    assert not cloud.compute.supports("2.61")
    script.microversions = ("", "")
    assert cloud.compute.newest("2.1") is None


def test_bodies_that_are_no_json_are_sent_and_read(script: ScriptedCloud, cloud: OpenStack) -> None:
    script.answers("PUT", "/images/1/file", status=204)
    script.answers("GET", "/images/1/file", lambda _: Answer(200, {}, b"\x00\xff"))
    cloud.image.upload("/images/1/file", [b"a", b"b"])
    assert script.requests[0].headers == {"Content-Type": "application/octet-stream"}
    assert list(script.requests[0].content or ()) == [b"a", b"b"]
    assert cloud.image.download("/images/1/file") == b"\x00\xff"


def test_a_list_of_operations_is_a_patch_for_glance(script: ScriptedCloud, cloud: OpenStack) -> None:
    script.answers("PATCH", "/images/1", {"id": "1"})
    cloud.image.patch("/images/1", [{"op": "add", "path": "/x", "value": "y"}])
    assert script.requests[0].headers["Content-Type"] == IMAGE_PATCH


def test_absence_is_none_and_false(script: ScriptedCloud, cloud: OpenStack) -> None:
    for method in ("GET", "DELETE"):
        script.answers(method, "/servers/x", {"itemNotFound": {"message": "gone", "code": 404}}, status=404)
    assert cloud.compute.find_one("/servers/x") is None
    assert cloud.compute.observed("/servers", "server", "x") is None
    assert cloud.compute.delete("/servers/x") is False


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (403, {"forbidden": {"message": "Quota exceeded for cores"}}, ProviderQuotaExceeded),
        (409, {"NeutronError": {"message": "Quota exceeded for resources"}}, ProviderQuotaExceeded),
        (413, {"overLimit": {"message": VOLUMES}}, ProviderQuotaExceeded),
        (409, {"NeutronError": {"message": "Port x is still in use."}}, ProviderConflict),
        (404, {"itemNotFound": {"message": "x"}}, ProviderNotFound),
        (429, {}, ProviderBusy),
        (503, "down", ProviderBusy),
        (500, {"computeFault": {"message": "x"}}, ProviderFailed),
        (502, "bad gateway", ProviderGatewayFailed),
        (400, {"badRequest": {"message": "x"}}, ProviderError),
    ],
)
def test_answers_are_errors_of_a_provider(
    script: ScriptedCloud, cloud: OpenStack, status: int, body: object, kind: type[Exception]
) -> None:
    script.answers(
        "POST", "/x", body, status=status, headers={"X-Openstack-Request-Id": "req-1", "Retry-After": "7"}
    )
    with pytest.raises(kind) as caught:
        cloud.compute.post("/x", {})
    assert type(caught.value) is kind
    assert f"(HTTP {status} from nova) (Request-ID: req-1)" in str(caught.value)
    if status in (429, 503):
        assert caught.value.retry_after == 7  # type: ignore[attr-defined]


def test_a_status_may_be_accepted(script: ScriptedCloud, cloud: OpenStack) -> None:
    script.answers("PUT", "/x", {"conflict": 1}, status=409)
    assert cloud.network.request("PUT", "/x", {}, accepted=(409,)) == {"conflict": 1}
