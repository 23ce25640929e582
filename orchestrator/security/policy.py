"""Authorization: a policy name for each operation, and the roles that allow it (docs/internals/rest-api.md
§15).

A file of the operator (`policy_file`) may override the defaults, one line each:

    stacks:delete: [admin]
    stacks:global_index: [admin]
    resource_types:OS::Nova::Server: [builder]  # by default every role may use a type
    stacks:abandon: []  # denied to all

Names are Heat's where Heat has the operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from orchestrator.config import Settings
from orchestrator.engine.validation.denied_types import DeniedTypes
from orchestrator.errors import Forbidden, InvalidTemplate, LimitExceeded, Misconfigured, did_you_mean
from orchestrator.security.caller import Caller
from orchestrator.security.resource_credentials import STACK_USER
from orchestrator.template.parse import Limits, parse

Policy = Mapping[str, frozenset[str]]  # policy name -> the roles; any of them suffices

READER: Final = "reader"
MEMBER: Final = "member"
ADMIN: Final = "admin"
IMPLIED: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {ADMIN: frozenset({ADMIN, MEMBER, READER}), MEMBER: frozenset({MEMBER, READER})}
)
"""What a role is besides itself, as Keystone has it from its first day."""

PRIVILEGED: Final = frozenset({"manager", "service"})  # of Keystone, besides the administrators of the policy
IS_ADMIN: Final = "context_is_admin"  # an admin without a project: docs/internals/rest-api.md §1
TYPES: Final = "resource_types:"
# The operations that accept the content of a stack.
AUTHORS: Final = (
    "stacks:create",
    "stacks:update",
    "stacks:update_patch",
    "cloudformation:CreateStack",
    "cloudformation:UpdateStack",
)


def _named(scope: str, names: str) -> list[str]:
    return [f"{scope}:{name}" for name in names.split()]


_READERS: Final = [
    *_named(
        "stacks",
        "index detail show preview template environment files list_resource_types list_template_versions "
        "list_template_functions resource_schema show_snapshot list_snapshots list_outputs show_output",
    ),
    *_named("stacks", "why progress failures list_revisions show_revision diff_revisions"),  # ours
    *_named("stacks", "show_observation_policy list_repairs"),  # ours
    *_named("events", "index show"),
    *_named("resource", "index show"),
    *_named("resource", "why hooks"),  # ours
    *_named("observations", "index history"),  # ours
    *_named("webhooks", "index show"),  # ours
    *_named("software_configs", "index show"),
    *_named("software_deployments", "index show"),
    *_named("build_info", "build_info"),
    *_named("actions", "check"),
    *_named(
        "cloudformation",
        "ListStacks DescribeStacks DescribeStackEvents ValidateTemplate GetTemplate EstimateTemplateCost "
        "DescribeStackResources ListStackResources",
    ),
]
_STACK_USERS: Final = [
    *_named("stacks", "lookup"),
    *_named("resource", "metadata"),
    *_named("software_deployments", "metadata"),
    *_named("cloudformation", "DescribeStackResource"),
]
# Not for readers, unlike reading metadata. `unset_hook` (ours) is a signal that clears a breakpoint.
_SIGNALLERS: Final = _named("resource", "signal unset_hook")
_MEMBERS: Final = [
    *_named(
        "stacks",
        "create update update_patch update_no_change delete preview_update preview_update_patch "
        "validate_template generate_template abandon export snapshot delete_snapshot restore_snapshot",
    ),
    *_named("stacks", "rollback observation_policy repair"),  # ours
    *_named("observations", "notify"),  # ours
    *_named("webhooks", "create delete test rearm"),  # ours
    *_named("actions", "suspend resume cancel_update cancel_without_rollback converge"),
    *_named("resource", "mark_unhealthy"),
    *_named("software_configs", "create delete"),
    *_named("software_deployments", "create update delete"),
    *_named("cloudformation", "CreateStack UpdateStack CancelUpdateStack DeleteStack"),
]
_WITHOUT_ROLE: Final = ["stacks:global_index", "software_configs:global_index"]
_ADMIN_TYPES: Final = [
    *_named("OS::Blazar:", "Host"),
    *_named("OS::Cinder:", "EncryptedVolumeType QoSAssociation QoSSpecs Quota VolumeType"),
    *_named("OS::Keystone:", "*"),
    *_named("OS::Manila:", "ShareType"),
    *_named(
        "OS::Neutron:",
        "ProviderNet QoSBandwidthLimitRule QoSDscpMarkingRule QoSMinimumBandwidthRule "
        "QoSMinimumPacketRateRule QoSPolicy Quota Segment",
    ),
    *_named("OS::Nova:", "Flavor HostAggregate Quota"),
    *_named("OS::Octavia:", "AvailabilityZone AvailabilityZoneProfile Flavor FlavorProfile Quota"),
]
_ADMINS: Final = [IS_ADMIN, "service:index", *(f"{TYPES}{name}" for name in _ADMIN_TYPES)]

TABLE: Final[Policy] = MappingProxyType(
    {
        **dict.fromkeys(_READERS, frozenset({READER})),
        **dict.fromkeys(_STACK_USERS, frozenset({READER, STACK_USER})),
        **dict.fromkeys(_SIGNALLERS, frozenset({MEMBER, STACK_USER})),
        **dict.fromkeys(_MEMBERS, frozenset({MEMBER})),
        **dict.fromkeys(_WITHOUT_ROLE, frozenset()),
        **dict.fromkeys(_ADMINS, frozenset({ADMIN})),
    }
)
"""The default policy."""


_LOOKING: Final = frozenset(
    _named("stacks", "preview_update preview_update_patch validate_template generate_template export")
)
CHANGES: Final = frozenset(
    {*_MEMBERS, *_SIGNALLERS, "actions:action", "actions:check"} - _LOOKING,
)
"""Audited operations that change something; `actions:action` is any of a stack's actions."""

SECRET_READS: Final = frozenset(
    {
        *_named("stacks", "template environment files export show_revision show_snapshot list_snapshots"),
        *_named("resource", "metadata"),
        *_named("software_configs", "show"),
        *_named("software_deployments", "index show metadata"),
        *_named("cloudformation", "GetTemplate DescribeStackResource"),
    }
)
"""Audited operations whose response may contain a secret. Reading outputs is audited if their value contains
a secret (docs/authentication.md, "Audit").
"""
AUDITED: Final = CHANGES | SECRET_READS


def allowed(policy: Policy, name: str, caller: Caller) -> bool:
    """Whether the policy allows an operation to the caller."""
    required = policy[name]
    return any(role in required or not required.isdisjoint(IMPLIED.get(role, ())) for role in caller.roles)


def require(policy: Policy, name: str, caller: Caller) -> None:
    """Check that the policy allows an operation to the caller.

    Raises:
        Forbidden: it does not; the message is Heat's.
    """
    if not allowed(policy, name, caller):
        raise Forbidden(f"You are not authorized to use {name}.")


def type_policy(policy: Policy, caller: Caller) -> Callable[[str], None]:
    """Return a check that raises Forbidden for types that the caller may not use.

    A type is governed by its own rule and by its namespace's (`OS::Keystone::*`). Without a rule, every
    caller may use it.
    """

    denied = denied_types(policy, caller)

    def enter(type_name: str) -> None:
        rule = denied.rule_of(type_name)
        if rule is not None:
            name = f"{TYPES}{type_name}" if rule == type_name else type_name
            raise Forbidden(f"You are not authorized to use {name}.")

    return enter


def denied_types(policy: Policy, caller: Caller) -> DeniedTypes:
    """Return the types that the caller may not use. A revision stores them for its author."""
    return _denied(policy, caller.roles)


def types_denied_to_any_author(policy: Policy) -> DeniedTypes:
    """Return the types that some caller with the right to create or update stacks may not use: those that an
    unknown author perhaps may not use.
    """
    authors = frozenset[str]().union(*(policy[name] for name in AUTHORS))
    return DeniedTypes(frozenset().union(*(_denied(policy, (role,)).rules for role in authors)))


def _denied(policy: Policy, roles: Sequence[str]) -> DeniedTypes:
    caller = Caller("", roles=tuple(roles))
    rules = [name for name in policy if name.startswith(TYPES) and not allowed(policy, name, caller)]
    return DeniedTypes(frozenset(name.removeprefix(TYPES) for name in rules))


class TypePermission:
    """The permission of a caller for each type of content, and whether the caller is an administrator."""

    def __init__(self, policy: Policy, caller: Caller) -> None:
        """Compare the caller with themselves without their roles of administrators."""
        self._require = type_policy(policy, caller)
        roles = without_admin(policy, caller.roles)
        self._require_of_member = type_policy(policy, replace(caller, roles=roles))
        self.needs_admin = False  # a type was met that only an administrator may use

    def __call__(self, type_name: str) -> None:
        """Check that the caller may use a type.

        Raises:
            Forbidden: they may not.
        """
        self._require(type_name)
        try:
            self._require_of_member(type_name)
        except Forbidden:
            self.needs_admin = True


def without_admin(policy: Policy, roles: Sequence[str]) -> tuple[str, ...]:
    """Return the roles without administrators' roles; all, if the others do not permit to create stacks."""
    rest = tuple([role for role in roles if role not in policy[IS_ADMIN] and role not in PRIVILEGED])
    return rest if allowed(policy, "stacks:create", Caller("", roles=rest)) else tuple(roles)


def policy_of(settings: Settings) -> Policy:
    """Return the installation's policy. The file is read once per process: a change takes effect at a
    restart.

    Raises:
        Misconfigured: it cannot be read or is invalid; the message lists every fault.
    """
    return TABLE if settings.policy_file is None else _read(settings.policy_file)


@cache
def _read(path: Path) -> Policy:
    try:
        document = parse(path.read_bytes(), Limits(max_bytes=1024 * 1024), "policy")
    except OSError as error:
        raise Misconfigured(f"the policy {path} cannot be read: {error.strerror or error}") from error
    except (InvalidTemplate, LimitExceeded) as error:
        raise Misconfigured(f"the policy {path} is wrong: {error}") from error
    if not isinstance(document, dict):
        raise Misconfigured(f"the policy {path} is wrong: it must be a map of names to lists of roles")
    faults = list(_faults(document))
    if faults:
        raise Misconfigured(f"the policy {path} is wrong:\n" + "\n".join(f"  {fault}" for fault in faults))
    overrides = {name: frozenset(roles) for name, roles in document.items()}
    return MappingProxyType({**TABLE, **overrides})


def _faults(document: Mapping[Any, Any]) -> Iterable[str]:
    for name, roles in document.items():
        if not isinstance(name, str) or (name not in TABLE and not name.startswith(TYPES)):
            hint = did_you_mean(str(name), TABLE)
            yield f"{name}: unknown policy. {hint}".rstrip()
        if not isinstance(roles, list) or not all(isinstance(role, str) and role for role in roles):
            yield f"{name}: must be a list of roles; [] allows no caller"
