"""The faults of a cloud: rules for the injector, and disturbances of processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

POSTS: Final = {
    "neutron": "^/v2.0/(networks|subnets|ports|security-groups)",
    "nova": "/(servers|os-keypairs|os-server-groups|os-volume_attachments)$",
    "cinder": "/volumes$",
}
CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"
ALL: Final = (CREATE, UPDATE, DELETE)
CHANGING: Final = {CREATE: "POST", UPDATE: "PUT", DELETE: "DELETE"}


@dataclass(frozen=True)
class Fault:
    """A fault, and the actions during which it is present."""

    name: str
    rules: Callable[[str], dict[str, Any]] = field(default=lambda _action: {})
    actions: tuple[str, ...] = ALL
    # Repeated while the action is in progress.
    disturbance: str = ""  # kill the worker, refuse observations, freeze nova, stop neutron ...
    limit_seconds: float = 600.0
    real_only: bool = False
    may_fail: bool = False  # the action may fail with a cause; a plain update then completes the stack


def _api(**effect: Any) -> Callable[[str], dict[str, Any]]:
    """Return rules with an effect on the changing requests of an action to each service."""

    def rules(action: str) -> dict[str, Any]:
        method = CHANGING[action]
        paths = POSTS if action == CREATE else dict.fromkeys(POSTS, "")
        return {
            "api": [
                {"service": name, "method": method, "path": path, "times": 1, **effect}
                for name, path in paths.items()
            ]
        }

    return rules


def _point(point: str, **effect: Any) -> Callable[[str], dict[str, Any]]:
    return lambda _action: {point: {"match": "", "error": "injected fault", **effect}}


FAULTS: Final = (
    Fault("none"),
    Fault("500 once", _api(status=500)),
    Fault("500 after the request was carried out", _api(status=500, after=True)),
    Fault("503 once", _api(status=503)),
    Fault("503 with Retry-After", _api(status=503, headers={"Retry-After": "2"}, times=3)),
    Fault("429 with Retry-After", _api(status=429, headers={"Retry-After": "2"}, times=3)),
    Fault("409 once", _api(status=409), may_fail=True),
    Fault("401 once", _api(status=401)),
    Fault("connection dropped three times", _api(drop=True, times=3)),
    Fault("answer lost", _api(drop=True, after=True)),
    Fault("slower than the deadline", _api(delay=25), limit_seconds=900.0),
    Fault("slow observations", lambda _: {"api": [{"method": "GET", "delay": 4, "times": 6}]}),
    Fault("every third observation 503", disturbance="refuse observations"),
    Fault("build fails once", _point("spawn", times=1), actions=(CREATE,), may_fail=True),
    Fault("all builds fail", _point("spawn"), actions=(CREATE,), may_fail=True),
    Fault("slow build", lambda _: {"spawn": {"match": "", "delay": 12}}, actions=(CREATE,)),
    Fault("binding fails", _point("bind"), actions=(CREATE,), may_fail=True),
    Fault("delete of a server fails once", _point("destroy", times=1), actions=(DELETE,), may_fail=True),
    Fault("volume fails once", _point("volume_create", times=1), actions=(CREATE,), may_fail=True),
    Fault(
        "delete of a volume fails once", _point("volume_delete", times=1), actions=(DELETE,), may_fail=True
    ),
    Fault("attachment fails once", _point("attach_volume", times=1), actions=(CREATE,), may_fail=True),
    Fault("worker killed", disturbance="kill the worker"),
    Fault(
        "worker killed during slow requests",
        lambda action: {"api": [{"method": CHANGING[action], "delay": 1.5}]},
        disturbance="kill the worker",
        limit_seconds=900.0,
    ),
    Fault(
        "worker killed after requests",
        lambda action: {"api": [{"method": CHANGING[action], "drop": True, "after": True, "times": 4}]},
        disturbance="kill the worker",
        limit_seconds=900.0,
    ),
    Fault("nova frozen for a while", disturbance="freeze nova-api", real_only=True),
    Fault("neutron frozen for a while", disturbance="freeze neutron", real_only=True),
    Fault("cinder stopped for a while", disturbance="stop cinder-api", real_only=True),
    Fault("nova-compute stopped for a while", disturbance="stop nova-compute", real_only=True, may_fail=True),
)
