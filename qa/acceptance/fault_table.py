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
# Not the requests that services send each other: a detachment that Cinder refuses to Nova leaves the volume
# in the state `detaching`, which only an administrator can end.
DELETES: Final = {
    "neutron": "^/v2.0/(networks|subnets|ports|security-groups)/[^/]+$",
    "nova": "",
    "cinder": "/volumes/[^/]+$",
}
PUTS: Final = dict.fromkeys(POSTS, "")
CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"
ALL: Final = (CREATE, UPDATE, DELETE)
LOST_SECONDS, DEAD_SECONDS = 10.0, 40.0  # the most that a lost answer and a dead worker may cost
CHANGING: Final = {CREATE: ("POST", POSTS), UPDATE: ("PUT", PUTS), DELETE: ("DELETE", DELETES)}


@dataclass(frozen=True)
class Fault:
    """A fault, and the actions during which it is present."""

    name: str
    rules: Callable[[str], dict[str, Any]] = field(default=lambda _action: {})
    actions: tuple[str, ...] = ALL
    preparation: str = ""  # before the action (preparations.py)
    # While the action is in progress (disturbances.py): "kill once", "freeze nova-api", "stop neutron" ...
    disturbance: str = ""
    limit_seconds: float = 600.0
    real_only: bool = False
    may_fail: bool = False  # the action may fail with a cause; a plain update then completes the stack
    cost_seconds: float | None = None  # the most that an action may take longer


def _api(**effect: Any) -> Callable[[str], dict[str, Any]]:
    """Return rules with an effect on the changing requests of an action to each service."""

    def rules(action: str) -> dict[str, Any]:
        method, paths = CHANGING[action]
        return {
            "api": [
                {"service": name, "method": method, "path": path, "times": 1, **effect}
                for name, path in paths.items()
            ]
        }

    return rules


def _lost(service: str) -> Callable[[str], dict[str, Any]]:
    """Return the loss of the answer to a single changing request of an action to a service."""

    def rules(action: str) -> dict[str, Any]:
        method, paths = CHANGING[action]
        rule = {"service": service, "method": method, "path": paths[service], "times": 1}
        return {"api": [{**rule, "drop": True, "after": True}]}

    return rules


def _point(point: str, **effect: Any) -> Callable[[str], dict[str, Any]]:
    return lambda _action: {point: {"match": "", "error": "injected fault", **effect}}


def _attachments(method: str) -> dict[str, Any]:
    """Return the rule for a request of nova to cinder, which users do not send."""
    return {"service": "cinder", "method": method, "path": "/attachments/", "status": 503, "times": 1}


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
    Fault("one answer of neutron lost", _lost("neutron"), cost_seconds=LOST_SECONDS),
    Fault("one answer of nova lost", _lost("nova"), cost_seconds=LOST_SECONDS),
    Fault("one answer of cinder lost", _lost("cinder"), cost_seconds=LOST_SECONDS),
    Fault("an answer of each service lost", _api(drop=True, after=True)),
    Fault("slower than the deadline", _api(delay=25), limit_seconds=900.0),
    Fault("slow observations", lambda _: {"api": [{"method": "GET", "delay": 4, "times": 6}]}),
    Fault("every third observation 503", disturbance="refuse"),
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
    *(
        Fault(
            f"cinder refuses {what} of nova",
            lambda _, method=method: {"api": [_attachments(method), _attachments("DELETE")]},
            actions=(action,),
            real_only=True,
        )
        for what, method, action in (("detachments", "DELETE", DELETE), ("attachments", "PUT", CREATE))
    ),
    Fault("worker killed once", disturbance="kill once", cost_seconds=DEAD_SECONDS),
    Fault("worker killed", disturbance="kill often"),
    Fault(
        "worker killed during slow requests",
        lambda action: {"api": [{"method": CHANGING[action][0], "delay": 1.5}]},
        disturbance="kill often",
        limit_seconds=900.0,
    ),
    Fault(
        "worker killed after requests",
        _api(drop=True, after=True, times=4),
        disturbance="kill often",
        limit_seconds=900.0,
    ),
    *(
        Fault(f"worker dies {moment} each request", disturbance=f"die {moment}", limit_seconds=1_800.0)
        for moment in ("before", "during", "after")
    ),
    *(
        Fault(
            f"{name} {state}",
            disturbance=f"{verb} {name}",
            limit_seconds=1_800.0,
            real_only=True,
            may_fail=name in ("placement", "glance"),
        )
        for verb, state in (("freeze", "frozen"), ("stop", "stopped"))
        for name in ("keystone", "placement", "glance", "nova-api", "neutron", "cinder-api")
    ),
    *(
        Fault(f"{name} stopped", disturbance=f"stop {name}", real_only=True, may_fail=True)
        for name in ("nova-compute", "cinder-volume", "rabbit")
    ),
    Fault("tokens revoked", disturbance="revoke tokens", may_fail=True),
    Fault("roles revoked", disturbance="revoke roles", may_fail=True),
    Fault("trusts revoked", disturbance="revoke trusts", may_fail=True),
    Fault("quota used up", preparation="no quota", actions=(CREATE,), may_fail=True),
    Fault("server deleted", preparation="delete a server", actions=(UPDATE, DELETE), may_fail=True),
    Fault("server in error", preparation="server in error", actions=(UPDATE, DELETE), may_fail=True),
    Fault("server locked", preparation="lock a server", actions=(UPDATE, DELETE), may_fail=True),
    Fault("network in use", preparation="foreign port", actions=(UPDATE, DELETE), may_fail=True),
    Fault("volume detached", preparation="detach the volume", actions=(UPDATE, DELETE), may_fail=True),
)
