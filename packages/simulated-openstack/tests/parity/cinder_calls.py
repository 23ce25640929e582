"""Calls at Cinder: volumes, their actions, snapshots, types, QoS, quotas."""

from __future__ import annotations

from typing import Any, Final

from parity.calls import Call
from parity.neutron_requests import NO_ID

READY: Final = ("volume.status", ("available", "error"))
LATEST: Final = {"OpenStack-API-Version": "volume 3.70"}


def _call(method: str, path: str, body: Any = None, **options: Any) -> Call:
    return Call("cinder", method, path, body, **options)


def volume(**values: Any) -> dict[str, Any]:
    """Return the body of a volume."""
    return {"volume": values}


def action(name: str, body: Any = None, **options: Any) -> Call:
    """Return an action on the volume."""
    return _call("POST", "/volumes/{v}/action", {name: body}, **options)


WAIT: Final = _call("GET", "/volumes/{v}", until=READY, compare=False)
VERSIONS: Final = (
    _call("GET", "@/", by="none"),
    _call("GET", "@/v3/", by="none"),
    _call("GET", "/volumes", by="none"),
    _call("GET", "/volumes", headers={"OpenStack-API-Version": "volume 3.999"}),
)
VOLUMES: Final = (
    _call(
        "POST",
        "/volumes",
        volume(name="h5-v", size=1, description="d", metadata={"a": "b"}),
        save={"v": "volume.id"},
    ),
    WAIT,
    _call("POST", "/volumes", volume(name="h5-v")),
    _call("POST", "/volumes", volume(name="h5-v", size=0)),
    _call("POST", "/volumes", volume(name="h5-v", size="x")),
    _call("POST", "/volumes", volume(name="h5-v", size=1, bogus=1)),
    _call("POST", "/volumes", volume(name="h5-v", size=1, volume_type="none")),
    _call("POST", "/volumes", volume(name="h5-v", size=1, snapshot_id=NO_ID)),
    _call("POST", "/volumes", volume(name="h5-v", size=1, source_volid=NO_ID)),
    _call("POST", "/volumes", volume(name="h5-v", size=1, imageRef=NO_ID)),
    _call("POST", "/volumes", volume(name="h5-v", size=1, availability_zone="none")),
    _call("GET", "/volumes/{v}"),
    _call("GET", "/volumes/{v}", headers=LATEST),
    _call("GET", f"/volumes/{NO_ID}"),
    _call("GET", "/volumes?name=h5-v"),
    _call("GET", "/volumes/detail?name=h5-v"),
    _call("GET", "/volumes/detail?name=h5-v&limit=1"),
    _call("GET", "/volumes?metadata=%7B%27a%27%3A+%27b%27%7D"),
    _call("PUT", "/volumes/{v}", {"volume": {"name": "h5-v2", "description": "e"}}),
    _call("PUT", f"/volumes/{NO_ID}", {"volume": {"name": "h5-v2"}}),
    _call("PUT", "/volumes/{v}/metadata", {"metadata": {"x": "y"}}),
    _call("POST", "/volumes/{v}/metadata", {"metadata": {"z": "1"}}),
    _call("GET", "/volumes/{v}/metadata"),
    _call("DELETE", "/volumes/{v}/metadata/z"),
    _call("DELETE", "/volumes/{v}/metadata/none"),
    action("os-update_readonly_flag", {"readonly": True}),
    action("os-set_bootable", {"bootable": True}),
    _call("GET", "/volumes/{v}"),
    action("os-extend", {"new_size": 2}),
    _call("GET", "/volumes/{v}", until=("volume.size", (2,)), compare=False),
    WAIT,
    action("os-extend", {"new_size": 1}),
    action("os-extend", {"new_size": 9_000_000}),
    action("os-bogus", {}),
    action("os-detach", {}),
    action("os-reset_status", {"status": "error"}),
    action("os-extend", {"new_size": 5}),
    action("os-reset_status", {"status": "available"}),
    _call("POST", f"/volumes/{NO_ID}/action", {"os-extend": {"new_size": 5}}),
)
SNAPSHOTS: Final = (
    _call(
        "POST",
        "/snapshots",
        {"snapshot": {"volume_id": "{v}", "name": "h5-s", "metadata": {"k": "1"}}},
        save={"s": "snapshot.id"},
    ),
    _call("GET", "/snapshots/{s}", until=("snapshot.status", ("available",)), compare=False),
    _call("POST", "/snapshots", {"snapshot": {"volume_id": NO_ID}}),
    _call("GET", "/snapshots/{s}"),
    _call("GET", f"/snapshots/{NO_ID}"),
    _call("GET", "/snapshots?volume_id={v}"),
    _call("GET", "/snapshots/detail?volume_id={v}"),
    _call("PUT", "/snapshots/{s}", {"snapshot": {"name": "h5-s2"}}),
    _call("DELETE", "/volumes/{v}"),
    _call("POST", "/volumes", volume(name="h5-vs", size=2, snapshot_id="{s}"), save={"vs": "volume.id"}),
    _call("GET", "/volumes/{vs}", until=READY),
    _call("POST", "/volumes", volume(name="h5-vs", size=1, snapshot_id="{s}")),
    _call("POST", "/volumes", volume(name="h5-vc", size=2, source_volid="{v}"), save={"vc": "volume.id"}),
    _call("GET", "/volumes/{vc}", until=READY),
    _call("GET", "/volumes/{vs}", compare=False),
    Call("glance", "GET", "/v2/images?name=cirros", save={"img": "images.0.id"}, compare=False),
    _call("POST", "/volumes", volume(name="h5-vi", size=1, imageRef="{img}"), save={"vi": "volume.id"}),
    _call("GET", "/volumes/{vi}", until=READY),
    _call("DELETE", "/volumes/{vi}"),
    _call("GET", "/volumes/{vi}", until_status=404),
    _call("DELETE", "/volumes/{vs}"),
    _call("DELETE", "/volumes/{vc}"),
    _call("DELETE", "/snapshots/{s}"),
    _call("GET", "/snapshots/{s}", until_status=404),
    _call("DELETE", "/snapshots/{s}"),
)
TYPES: Final = (
    _call("GET", "/types?name=fake", compare=False),
    _call(
        "POST",
        "/types",
        {
            "volume_type": {
                "name": "h5-t",
                "description": "d",
                "extra_specs": {"a": "b"},
                "os-volume-type-access:is_public": True,
            }
        },
        save={"t": "volume_type.id"},
    ),
    _call("POST", "/types", {"volume_type": {"name": "h5-t"}}),
    _call("POST", "/types", {"volume_type": {"name": "h5-t9"}}, by="demo"),
    _call("GET", "/types/{t}"),
    _call("GET", f"/types/{NO_ID}"),
    _call("PUT", "/types/{t}", {"volume_type": {"name": "h5-t2", "description": "e"}}),
    _call("POST", "/types/{t}/extra_specs", {"extra_specs": {"c": "d"}}),
    _call("GET", "/types/{t}/extra_specs"),
    _call("DELETE", "/types/{t}/extra_specs/a"),
    _call("DELETE", "/types/{t}/extra_specs/none"),
    _call("DELETE", "/types/{t}/extra_specs/c"),
    _call(
        "POST",
        "/types/{t}/encryption",
        {
            "encryption": {
                "provider": "luks",
                "control_location": "front-end",
                "cipher": "aes-xts-plain64",
                "key_size": 256,
            }
        },
    ),
    _call("GET", "/types/{t}/encryption"),
    _call("PUT", "/types/{t}/encryption/provider", {"encryption": {"key_size": 128}}),
    _call("DELETE", "/types/{t}/encryption/provider"),
    _call("GET", "/types/{t}/encryption"),
    _call(
        "POST",
        "/types",
        {"volume_type": {"name": "h5-tp", "os-volume-type-access:is_public": False}},
        save={"tp": "volume_type.id"},
    ),
    _call("POST", "/types/{tp}/action", {"addProjectAccess": {"project": "{project}"}}),
    _call("POST", "/types/{tp}/action", {"addProjectAccess": {"project": "{project}"}}),
    _call("GET", "/types/{tp}/os-volume-type-access"),
    _call("POST", "/types/{tp}/action", {"removeProjectAccess": {"project": "{project}"}}),
    _call("DELETE", "/types/{tp}"),
    action("os-retype", {"new_type": "h5-t2", "migration_policy": "never"}),
    _call("GET", "/volumes/{v}", until=("volume.volume_type", ("h5-t2",)), compare=False),
    action("os-retype", {"new_type": "none", "migration_policy": "never"}),
    _call("DELETE", "/types/{t}"),
    _call(
        "POST",
        "/qos-specs",
        {"qos_specs": {"name": "h5-q", "consumer": "front-end", "total_iops_sec": "5"}},
        save={"q": "qos_specs.id"},
    ),
    _call("POST", "/qos-specs", {"qos_specs": {"name": "h5-q"}}),
    _call("GET", "/qos-specs/{q}"),
    _call("GET", f"/qos-specs/{NO_ID}"),
    _call("PUT", "/qos-specs/{q}", {"qos_specs": {"total_iops_sec": "7", "x": "1"}}),
    _call("PUT", "/qos-specs/{q}/delete_keys", {"keys": ["x"]}),
    _call("GET", "/qos-specs/{q}/associate?vol_type_id={t}"),
    _call("GET", "/qos-specs/{q}/associations"),
    _call("DELETE", "/qos-specs/{q}"),
    _call("GET", "/qos-specs/{q}/disassociate?vol_type_id={t}"),
    _call("DELETE", "/qos-specs/{q}"),
    _call("GET", "/qos-specs/{q}", until_status=404),
)
NOWHERE: Final = {"name": "h5-nowhere", "extra_specs": {"volume_backend_name": "nowhere"}}
WITH_MESSAGES: Final = {"OpenStack-API-Version": "volume 3.5"}
MESSAGES: Final = (
    _call("POST", "/types", {"volume_type": NOWHERE}, save={"tn": "volume_type.id"}, compare=False),
    _call(
        "POST",
        "/volumes",
        volume(name="h5-vn", size=1, volume_type="h5-nowhere"),
        save={"vn": "volume.id"},
        compare=False,
    ),
    _call("GET", "/volumes/{vn}", until=("volume.status", ("error",)), compare=False),
    _call("GET", "/messages?resource_uuid={vn}"),
    _call("GET", "/messages?resource_uuid={vn}", headers=WITH_MESSAGES, save={"m": "messages.0.id"}),
    _call("GET", "/messages?resource_uuid={vn}&limit=1", headers=WITH_MESSAGES),
    _call("GET", "/messages?resource_uuid={v}", headers=WITH_MESSAGES),
    _call("GET", "/messages/{m}", headers=WITH_MESSAGES),
    _call("GET", f"/messages/{NO_ID}", headers=WITH_MESSAGES),
    _call("DELETE", "/messages/{m}", headers=WITH_MESSAGES),
    _call("DELETE", "/messages/{m}", headers=WITH_MESSAGES),
    _call("DELETE", "/volumes/{vn}", compare=False),
    _call("GET", "/volumes/{vn}", until_status=404, compare=False),
    _call("DELETE", "/types/{tn}", compare=False),
)
QUOTAS: Final = (
    _call("GET", "/os-quota-sets/{project}"),
    _call("GET", "/os-quota-sets/{project}?usage=True", compare=False),
    _call("PUT", "/os-quota-sets/h5none", {"quota_set": {"volumes": 1, "gigabytes": 5, "snapshots": 0}}),
    _call("PUT", "/os-quota-sets/{project}", {"quota_set": {"volumes": 1}}, by="demo"),
    _call("PUT", "/os-quota-sets/{project}", {"quota_set": {"volumes": 0}}, compare=False),
    _call("POST", "/volumes", volume(name="h5-o", size=1)),
    _call("PUT", "/os-quota-sets/{project}", {"quota_set": {"volumes": 1000, "gigabytes": 3}}, compare=False),
    _call("POST", "/volumes", volume(name="h5-o", size=10)),
    _call(
        "PUT", "/os-quota-sets/{project}", {"quota_set": {"gigabytes": 100000, "snapshots": 0}}, compare=False
    ),
    _call("POST", "/snapshots", {"snapshot": {"volume_id": "{v}", "name": "h5-s"}}),
    _call(
        "PUT",
        "/os-quota-sets/{project}",
        {"quota_set": {"volumes": 1000, "gigabytes": 100000, "snapshots": 1000}},
        compare=False,
    ),
    _call("GET", "/os-availability-zone"),
    _call("GET", "/scheduler-stats/get_pools", compare=False),
    _call("GET", "/bogus"),
    _call("DELETE", "/volumes/{v}"),
    _call("GET", "/volumes/{v}", until_status=404),
    _call("DELETE", "/volumes/{v}"),
    _call("DELETE", "/types/{t}"),
    _call("DELETE", "/types/{t}"),
)
CALLS: Final = (*VERSIONS, *VOLUMES, *SNAPSHOTS, *TYPES, *MESSAGES, *QUOTAS)
