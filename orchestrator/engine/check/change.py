"""Choose whether an existing resource is kept, updated or replaced: pure.

`decide_change` is the only place of this decision. A check carries it out; a preview only reports it. Some
facts cost a call to the provider, so the function asks for each when it matters: it returns `Ask(fact)`, and
the caller repeats the call with the answer. Every reason to replace a resource is a `ReplaceReason`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal, NamedTuple

from orchestrator.engine.check.decide import Keep
from orchestrator.engine.check.property_diff import changed_properties, needs_other_type, property_change
from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import Observation, ResourceType
from orchestrator.schema.properties import immutable_message

NO_NAMES: Final[frozenset[str]] = frozenset()

# Facts that the caller supplies when asked: the evaluated definition; whether a failed resource is healthy
# by now; a fresh observation; whether the type can make this change in place in the resource's present state.
Fact = Literal["definition", "health", "observation", "feasibility"]


class ReplaceReason(Enum):
    """The reasons to replace a resource, in the order in which they are considered, with their texts."""

    TYPE_CHANGED = "its type changes from {recorded} to {desired}"
    ADOPTION_FAILED = "it could not be adopted"
    FAILED = "it has failed"
    UNHEALTHY = "it is unhealthy"
    MISSING = "it is gone"
    BROKEN = "it is broken: {error}"
    FIXED_PROPERTIES = "{names} cannot be changed in place"
    TYPE_RULE = "its type requires a replacement when {names} {verb}"
    NOT_FEASIBLE = "its type cannot make this change in place now"
    OPERATION_CANCELLED = "its unfinished operation was cancelled"
    NEVER_READY = "it does not become ready"


@dataclass(frozen=True, slots=True)
class Update:
    """Change these properties in place; none: only metadata or requirements change."""

    changed: frozenset[str] = NO_NAMES


@dataclass(frozen=True, slots=True)
class Replace:
    """Create a replacement, and delete this incarnation once no resource requires it."""

    because: ReplaceReason
    changed: frozenset[str] = NO_NAMES  # the properties that differ, if these are the reason

    def text(self, **fields: object) -> str:
        """Return the reason in words."""
        return self.because.value.format(**fields)


@dataclass(frozen=True, slots=True)
class Recover:
    """Let the type repair an object in error; it stays the same object."""


@dataclass(frozen=True, slots=True)
class Shadow:
    """Leave the resource alone: the environment maps its type to OS::Heat::None."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Fail: Heat does not support this change. `properties` are the immutable properties among those
    `changed`.
    """

    message: str
    properties: tuple[str, ...] = ()
    changed: frozenset[str] = NO_NAMES


@dataclass(frozen=True, slots=True)
class Forbidden:
    """The environment restricts this action, `update` or `replace`."""

    action: Literal["update", "replace"]


@dataclass(frozen=True, slots=True)
class Ask:
    """Another fact is needed; repeat the call with it."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class AwaitReady:
    """A failed resource exists without an error and is not ready: compare it again later."""

    observation: Observation


Decision = Keep | Update | Replace | Recover | Shadow | Refuse | Forbidden | Ask | AwaitReady


class Recorded(NamedTuple):
    """An existing resource as recorded, properties corrected for observed drift."""

    name: str
    type: str  # as written in the template
    resource_type: str  # the name of the type that manages it
    action: str
    status: str
    physical_id: str | None
    properties: JsonMapping
    metadata: JsonMapping | None
    marked_unhealthy: bool = False  # by a user
    suspect: bool = False  # an observation beside operations found it absent or in error
    recoverable: bool = False  # it is to be recovered, if it is still in error


class Desired(NamedTuple):
    """The definition of the current revision."""

    resource_type: str
    shadowed: bool = False  # the environment, not the template, maps the type to OS::Heat::None
    properties: JsonMapping | None = None  # None: not evaluated yet
    metadata: Any = None
    external_id: str | None = None
    undetermined: frozenset[str] = NO_NAMES  # will differ, with values that are not known yet


class Evidence(NamedTuple):
    """Facts about the existing resource; None: not asked yet."""

    healthy: bool | None = None
    observation: Observation | None = None
    feasible: bool | None = None


class Comparison(NamedTuple):
    """Input of a decision."""

    recorded: Recorded
    desired: Desired
    resource_type: ResourceType
    evidence: Evidence = Evidence()
    converge: bool = False  # compare with the provider, not only with the row
    nested: bool = False  # the child stack reports its own failures
    restricted: frozenset[str] = NO_NAMES  # actions that the environment forbids
    restoring: bool = False  # a snapshot is being restored


Rule = Callable[[Comparison], Decision | None]


def _type_changed(case: Comparison) -> Decision | None:
    recorded, desired = case.recorded, case.desired
    if not needs_other_type(recorded.resource_type, desired.resource_type):
        return None
    if desired.shadowed and recorded.physical_id is not None:
        return Shadow()
    return Replace(ReplaceReason.TYPE_CHANGED)


def _not_evaluated(case: Comparison) -> Decision | None:
    return Ask("definition") if case.desired.properties is None else None


def _external(case: Comparison) -> Decision | None:
    """An external resource is never changed, and its id is fixed."""
    recorded, external_id = case.recorded, case.desired.external_id
    if external_id is None:
        return None
    if external_id != recorded.physical_id:
        return Refuse(
            f"Update to property external_id of {recorded.name} ({recorded.type}) is not supported."
        )
    return Keep()


def _adoption_failed(case: Comparison) -> Decision | None:
    """The second attempt to adopt a missing or broken resource replaces it."""
    observation = case.evidence.observation
    if observation is None:
        return Ask("observation")
    failed = case.recorded.status == "FAILED" and (observation.error or not observation.exists)
    return Replace(ReplaceReason.ADOPTION_FAILED) if failed else Keep()


def _failed(case: Comparison) -> Decision | None:
    """A failed resource is replaced if it does not exist, is in error, or was marked by a user.

    The provider is asked first: the failure of an operation says nothing about the object. A type may judge
    by itself (`is_healthy_after_failure`). A local type has no provider. After a failed update the progress
    of that update is unknown: the updatable properties that the provider does not report are sent again.
    """
    recorded, type_, evidence = case.recorded, case.resource_type, case.evidence
    if recorded.status != "FAILED":
        return None
    replacement = Replace(ReplaceReason.UNHEALTHY if recorded.action == "CHECK" else ReplaceReason.FAILED)
    if recorded.marked_unhealthy:
        return replacement
    if case.nested:
        return None  # the child stack updates its own failed resources
    if recorded.action == "DELETE":
        return replacement  # a requested delete may still be carried out
    if recorded.physical_id is None:  # a refused create may have had an effect
        if evidence.observation is None:
            return Ask("observation") if type_.calls_out and type_.can_find else replacement
        if not evidence.observation.exists:
            return replacement
    elif type_.judges_health:
        if evidence.healthy is None:
            return Ask("health")
        if not evidence.healthy:
            return replacement
        return _update_everything(case) if recorded.action == "UPDATE" else None
    if not type_.calls_out:
        return replacement
    observation = evidence.observation
    if observation is None:
        return Ask("observation")
    if not observation.exists or observation.error:
        return None  # as any missing or broken resource
    if not observation.ready:
        return _replacement(case) or AwaitReady(observation)
    return _update_unreported(case, observation) if recorded.action == "UPDATE" else None


def _missing_or_broken(case: Comparison) -> Decision | None:
    """The provider's answer decides before the properties are compared."""
    observation, type_ = case.evidence.observation, case.resource_type
    if observation is None:
        asks = case.converge or case.recorded.suspect or type_.undone_in_place
        return Ask("observation") if asks and type_.calls_out else None
    if not observation.exists:
        return Replace(ReplaceReason.MISSING)
    if not observation.error:
        return None
    if case.recorded.recoverable and type_.can_recover:
        if observation.busy:
            return AwaitReady(observation)
        if isinstance(_properties_changed(case), Keep):
            return Recover()
    return Replace(ReplaceReason.BROKEN)


def _properties_changed(case: Comparison) -> Decision:
    recorded, desired, type_ = case.recorded, case.desired, case.resource_type
    after = desired.properties or {}
    diff = property_change(
        type_, recorded.properties, after, recorded.metadata, desired.metadata, desired.undetermined
    )
    if diff.immutable and case.restoring:  # the snapshot has the values of an earlier object
        return _replace_for(type_, diff.changed)
    if diff.immutable:
        message = immutable_message(diff.immutable, recorded.name, recorded.type)
        return Refuse(message, diff.immutable, diff.changed)
    if diff.change == "replace":
        return _replace_for(type_, diff.changed)
    if diff.change == "keep":
        return Keep()
    if case.restoring and not type_.restores_in_place(recorded.properties, after, diff.changed):
        return Replace(ReplaceReason.TYPE_RULE, diff.changed)
    if case.nested or case.evidence.feasible:
        return Update(diff.changed)
    feasible = case.evidence.feasible
    return Ask("feasibility") if feasible is None else Replace(ReplaceReason.NOT_FEASIBLE, diff.changed)


def _replacement(case: Comparison) -> Replace | None:
    """Return the replacement that the properties require, if any: it need not wait for the object."""
    decision = _properties_changed(case)
    return decision if isinstance(decision, Replace) else None


def _reissue(case: Comparison) -> Decision:
    """An update that may never have been sent is sent again; the properties before it are unknown, too."""
    before, after = case.recorded.properties, case.desired.properties or {}
    changed = changed_properties(case.resource_type, before, after)
    if case.resource_type.change(before, after, changed) == "replace":
        return _replace_for(case.resource_type, changed)
    return _update_everything(case)


def _superseded_operation(case: Comparison) -> Decision:
    """A pending operation of an older definition is cancelled, if its type supports that."""
    cancellable = case.resource_type.can_cancel and case.recorded.physical_id is not None
    return Replace(ReplaceReason.OPERATION_CANCELLED) if cancellable else Keep()


def _replace_for(type_: ResourceType, changed: frozenset[str]) -> Replace:
    fixed = not_updatable(type_, changed)
    return Replace(ReplaceReason.FIXED_PROPERTIES if fixed else ReplaceReason.TYPE_RULE, changed)


def _update_everything(case: Comparison) -> Update:
    return Update(_updatable(case))


def _updatable(case: Comparison) -> frozenset[str]:
    declared, after = case.resource_type.properties, case.desired.properties or {}
    return frozenset(n for n in after if n in declared and declared[n].update_allowed)


def _update_unreported(case: Comparison, observation: Observation) -> Decision | None:
    """Send the updatable properties again that the provider does not report, and those that differ."""
    unreported = _updatable(case) - (observation.properties or {}).keys()
    if not unreported:
        return None
    compared = _properties_changed(case)
    match compared:
        case Update(changed=changed):
            return Update(unreported | changed)
        case Keep():
            return Update(unreported)
    return compared


def not_updatable(type_: ResourceType, changed: frozenset[str]) -> frozenset[str]:
    """Return the changed properties that the type cannot update."""
    declared = type_.properties
    return frozenset(n for n in changed if n not in declared or not declared[n].update_allowed)


# The first rule that returns a decision wins. A definition of another type is never evaluated.
COMPARE: Final[tuple[Rule, ...]] = (
    _type_changed,
    _not_evaluated,
    _external,
    _failed,
    _missing_or_broken,
    _properties_changed,
)
ADOPT: Final[tuple[Rule, ...]] = (_adoption_failed,)  # an adopted resource, observed
REISSUE: Final[tuple[Rule, ...]] = (_type_changed, _not_evaluated, _reissue)  # an unconfirmed update
TAKE_OVER: Final[tuple[Rule, ...]] = (_type_changed, _not_evaluated, _replacement)  # an open create or update
PREEMPT: Final[tuple[Rule, ...]] = (_superseded_operation,)  # a preemptible operation of an older definition


def decide_change(case: Comparison, rules: tuple[Rule, ...] = COMPARE) -> Decision:
    """Return the decision about an existing resource; `rules` depend on its open operation, if any."""
    decision: Decision = Keep()
    for rule in rules:
        step = rule(case)
        if step is not None:
            decision = step
            break
    return _permitted(decision, case.restricted) if case.restricted else decision


def _permitted(decision: Decision, restricted: frozenset[str]) -> Decision:
    """Apply the restrictions of the environment; shadowing counts as a replacement."""
    match decision:
        case Replace() | Shadow() if "replace" in restricted:
            return Forbidden("replace")
        case Update() | Recover() if "update" in restricted:
            return Forbidden("update")
    return decision
