"""Custom constraints: checks registered by name (docs/internals/hot-language.md §4.3).

A check takes a value and returns the reason why it is invalid: None if it is valid, "" for no further reason.
Checks register under the entry point group `orchestrator.constraints`; the entry's name is the constraint's
name. A check is loaded on first use. The built-in checks that need no service are in `constraint_checks.py`.

Heat's constraints that call a service are recognized by name, those of plugins by the entry point group of
look-ups (`lookups/`). `cloud_checks` connects them to a cloud. Otherwise the value is accepted: the service
itself rejects unknown names when the resource is created, and a template that names a flavor must not be
rejected where flavors cannot be listed. A name that is defined neither by Heat nor by a plugin is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache, partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from orchestrator.errors import Misconfigured

GROUP: Final = "orchestrator.constraints"
LOOKUPS: Final = "orchestrator.lookups"

Check = Callable[[Any], str | None]
CloudCheck = Callable[[str, Any], str | None]  # the same, with the name of the constraint

# By service, the object types whose name or id a value may be.
_SERVICES: Final[Mapping[str, str]] = {
    "barbican": "container secret",
    "blazar": "reservation",
    "cinder": "backup qos_specs snapshot volume vtype",
    "designate": "zone",
    "glance": "image",
    "ironic": "node portgroup",
    "keystone": "domain group project region role service user",
    "magnum": "cluster_template",
    "manila": "share_network share_snapshot share_type",
    "mistral": "workflow",
    "neutron": "address_scope flow_classifier lbaas.listener lbaas.loadbalancer lbaas.pool lbaas.provider "
    "network port port_pair port_pair_group qos_policy router security_group segment subnet subnetpool "
    "taas.tap_flow taas.tap_service",
    "nova": "flavor host keypair network server",
    "octavia": "availabilityzone availabilityzoneprofile flavor flavorprofile l7policy listener "
    "loadbalancer pool",
    "trove": "flavor",
    "zaqar": "queue",
}
CLOUD: Final = frozenset(
    f"{service}.{object_type}" for service, kinds in _SERVICES.items() for object_type in kinds.split()
)


_cloud_check: ContextVar[CloudCheck | None] = ContextVar("cloud_check", default=None)


@contextmanager
def cloud_checks(check: CloudCheck) -> Iterator[None]:
    """Let `check` decide about the constraints of services in the body."""
    token = _cloud_check.set(check)
    try:
        yield
    finally:
        _cloud_check.reset(token)


def custom_check(name: str, value: object) -> str | None:
    """Return the fault in `value` according to the constraint `name`, in Heat's wording, None if it is valid.

    Every element of a list is checked.

    Raises:
        Misconfigured: the plugin with the check cannot be loaded, or fails.
    """
    check = find_check(name)
    if check is None:
        if name not in CLOUD and name not in _lookups():
            return f'"{value}" does not validate {name} (constraint not found)'
        of_cloud = _cloud_check.get()
        if of_cloud is None:
            return None
        check = partial(of_cloud, name)
    for item in value if isinstance(value, (list, tuple)) else (value,):
        try:
            reason = check(item)
        except Exception as error:
            raise Misconfigured(f"constraint {name} failed: {type(error).__name__}: {error}") from error
        if reason is not None:
            return f"Error validating value '{value}'" + (f": {reason}" if reason else "")
    return None


def known_constraints() -> frozenset[str]:
    """Return the names that a template may use."""
    return CLOUD | _points().keys() | _lookups()


@lru_cache(maxsize=256)  # names are part of templates
def find_check(name: str) -> Check | None:
    """Return the check registered as `name`, None if it is not registered.

    Raises:
        Misconfigured: it is registered but cannot be loaded.
    """
    point = _points().get(name)
    if point is None:
        return None
    try:
        check = point.load()
    except Exception as error:
        raise Misconfigured(f"constraint {name} cannot be loaded from {point.value}: {error}") from error
    if not callable(check):
        raise Misconfigured(f"constraint {name}: {point.value} cannot be called")
    decorated: Check = check
    return decorated


@cache
def _lookups() -> frozenset[str]:
    return frozenset(point.name for point in entry_points(group=LOOKUPS))


@cache
def _points() -> Mapping[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}
