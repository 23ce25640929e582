"""Calls at Glance: images, their data, tags and members."""

from __future__ import annotations

from typing import Any, Final

from parity.calls import Call
from parity.neutron_requests import NO_ID

PATCH_TYPE: Final = {"Content-Type": "application/openstack-images-v2.1-json-patch"}
DATA_TYPE: Final = {"Content-Type": "application/octet-stream"}


def _call(method: str, path: str, body: Any = None, **options: Any) -> Call:
    return Call("glance", method, path, body, **options)


CALLS: Final = (
    _call("GET", "/", by="none"),
    _call("GET", "/versions", by="none"),
    _call("GET", "/v2/images?name=cirros"),
    _call("GET", "/v2/schemas/image", compare=False),
    _call(
        "POST",
        "/v2/images",
        {
            "name": "h5-i",
            "disk_format": "raw",
            "container_format": "bare",
            "tags": ["a"],
            "min_disk": 1,
            "min_ram": 64,
            "os_distro": "x",
            "visibility": "private",
        },
        save={"i": "id"},
    ),
    _call("POST", "/v2/images", {"name": "h5-i2", "disk_format": "bogus", "container_format": "bare"}),
    _call("POST", "/v2/images", {"name": "h5-i3", "visibility": "public"}, by="demo"),
    _call("POST", "/v2/images", {"name": 5}),
    _call("POST", "/v2/images", {"id": "{i}", "name": "x"}),
    _call("GET", "/v2/images/{i}"),
    _call("GET", f"/v2/images/{NO_ID}"),
    _call("GET", "/v2/images?name=h5-i"),
    _call("GET", "/v2/images?limit=1&sort_key=name&sort_dir=asc&visibility=public"),
    _call("GET", "/v2/images/{i}/file"),
    _call("PUT", "/v2/images/{i}/file", b"not a disk", headers=DATA_TYPE),
    _call("GET", "/v2/images/{i}"),
    _call("PUT", "/v2/images/{i}/file", b"not a disk", headers=DATA_TYPE),
    _call(
        "PATCH",
        "/v2/images/{i}",
        [
            {"op": "replace", "path": "/name", "value": "h5-j"},
            {"op": "add", "path": "/extra", "value": "1"},
            {"op": "remove", "path": "/os_distro"},
            {"op": "replace", "path": "/protected", "value": True},
        ],
        headers=PATCH_TYPE,
    ),
    _call(
        "PATCH", "/v2/images/{i}", [{"op": "replace", "path": "/status", "value": "x"}], headers=PATCH_TYPE
    ),
    _call("PATCH", "/v2/images/{i}", [{"op": "remove", "path": "/none"}], headers=PATCH_TYPE),
    _call(
        "PATCH", f"/v2/images/{NO_ID}", [{"op": "replace", "path": "/name", "value": "x"}], headers=PATCH_TYPE
    ),
    _call("DELETE", "/v2/images/{i}"),
    _call(
        "PATCH",
        "/v2/images/{i}",
        [{"op": "replace", "path": "/protected", "value": False}],
        headers=PATCH_TYPE,
    ),
    _call("PUT", "/v2/images/{i}/tags/b"),
    _call("DELETE", "/v2/images/{i}/tags/b"),
    _call("DELETE", "/v2/images/{i}/tags/none"),
    _call("POST", "/v2/images/{i}/actions/deactivate"),
    _call("GET", "/v2/images/{i}"),
    _call("POST", "/v2/images/{i}/actions/reactivate"),
    _call("GET", "/v2/images/{i}/members"),
    _call("POST", "/v2/images/{i}/members", {"member": "{project}"}),
    _call(
        "PATCH",
        "/v2/images/{i}",
        [{"op": "replace", "path": "/visibility", "value": "shared"}],
        headers=PATCH_TYPE,
    ),
    _call("POST", "/v2/images/{i}/members", {"member": "h5-other"}),
    _call("POST", "/v2/images/{i}/members", {"member": "h5-other"}),
    _call("GET", "/v2/images/{i}/members"),
    _call("DELETE", "/v2/images/{i}/members/h5-other"),
    _call("DELETE", "/v2/images/{i}/members/h5-other"),
    _call("GET", "/v2/images/{i}", by="demo", compare=False),
    _call(
        "POST", "/v2/images/{i}/import", {"method": {"name": "web-download", "uri": "http://127.0.0.1:1/x"}}
    ),
    _call("GET", "/v2/info/import"),
    _call(
        "POST",
        "/v2/images",
        {"name": "h5-w", "disk_format": "raw", "container_format": "bare"},
        save={"w": "id"},
    ),
    _call("POST", "/v2/images/{w}/import", {"method": {"name": "bogus"}}),
    _call("DELETE", "/v2/images/{w}"),
    _call("DELETE", "/v2/images/{i}"),
    _call("DELETE", "/v2/images/{i}"),
    _call("GET", "/v2/bogus"),
    _call("GET", "/v2/images", by="none"),
)
