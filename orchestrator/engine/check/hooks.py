"""The hooks at which a visit pauses: pure (docs/internals/engine-semantics.md §11).

The planner stores the hooks that apply to a resource in its node; a visit pauses when it reaches a hook. The
hooks of a paused node begin with its current hook. A cleared post hook leaves CHANGED, because the visit
that then releases the dependents sees no change itself. The planner stores the restrictions of the
environment together with the hooks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from orchestrator.engine.check.decide import Compare, Create, Delete, DropRow, Step
from orchestrator.engine.check.outcome import Deleted, Outcome, PreviousOperationEnded, Ready
from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.engine.plan_changes import Changes
from orchestrator.template.resource_registry import ResourceRegistry
from orchestrator.template.resource_registry_entries import HOOKS, RESTRICTED_ACTIONS

CHANGED: Final = "changed"
READY_TIMEOUT: Final = "ready-timeout-"
GIVEN_UP: Final = "Failure occurred while waiting."
UPDATES: Final = frozenset({"UPDATE", "ROLLBACK", "RESTORE"})  # the actions that apply a template


def pause_reason(hook: str) -> str:
    """Return the reason clients read when a resource pauses."""
    return f"{hook.partition('-')[2].upper()} paused until Hook {hook} is cleared"


def cleared_reason(hook: str) -> str:
    """Return the reason clients read when it continues."""
    return f"Hook {hook} is cleared"


def forbidden_reason(action: str) -> str:
    """Return the entry among a node's hooks for a forbidden action, `update` or `replace`."""
    return f"no-{action}"


def restricted(visit: ResourceVisit) -> frozenset[str]:
    """Return the actions that the environment forbids (docs/internals/hot-language.md §9.6)."""
    return frozenset(action for action in RESTRICTED_ACTIONS if forbidden_reason(action) in visit.hooks)


def ready_timeout_entry(seconds: float) -> str:
    """Return the entry among a node's hooks for a time limit, see `ready_timeout.py`."""
    return f"{READY_TIMEOUT}{seconds}"


def ready_timeout(entries: Iterable[str]) -> float | None:
    """Return the time limit in seconds among the entries of a node, None without a limit."""
    for entry in entries:
        if entry.startswith(READY_TIMEOUT):
            return float(entry.removeprefix(READY_TIMEOUT))
    return None


def is_hook(name: object) -> bool:
    """Return whether there is a hook of that name."""
    return name in HOOKS


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of a stack's environment, for an action."""

    registry: ResourceRegistry
    action: str  # the stack's

    def __bool__(self) -> bool:
        """Whether any hook, restriction or time limit exists: usually not, and then no resource is looked
        up.
        """
        registry = self.registry
        return registry.has_hooks or registry.has_restrictions or registry.has_ready_timeouts

    def visited(self, names: Iterable[str]) -> set[str]:
        """Return the resources that are visited even if they are unchanged."""
        if not self or self.action not in UPDATES:
            return set()
        return {name for name in names if "pre-update" in self.registry.hooks(name)}

    def of_slice(self, ids: Mapping[int, int], changes: Changes) -> dict[int, tuple[str, ...]]:
        """Return the hooks of the nodes of a plan that have any; `ids` maps numbers of nodes to ids.

        The updates are numbered first, then the cleanups.
        """
        pauses: dict[int, tuple[str, ...]] = {}
        for node, id_ in ids.items():
            if node < len(changes.visited):
                row = changes.current.get(changes.visited[node])
                made = row is not None and not row.never_created
                pauses[id_] = self.of_update(changes.visited[node], made=made)
            elif node < len(changes.visited) + len(changes.cleanups):
                pauses[id_] = self.of_cleanup(changes.cleanups[node - len(changes.visited)].name)
        return {id_: hooks for id_, hooks in pauses.items() if hooks}

    def of_update(self, name: str, *, made: bool) -> tuple[str, ...]:
        """Return the hooks of an update node; `made` if the resource exists.

        A resource that an update adds or replaces has no hooks, only a time limit.
        """
        seconds = self.registry.ready_timeout(name)
        limit = () if seconds is None else (ready_timeout_entry(seconds),)
        if self.action == "CREATE":
            return (*self._set(name, "pre-create", "post-create"), *limit)
        if self.action in UPDATES and made:
            forbidden = self.registry.restricted_actions(name)
            reasons = tuple(forbidden_reason(action) for action in RESTRICTED_ACTIONS if action in forbidden)
            return (*self._set(name, "pre-update", "post-update"), *reasons, *limit)
        return limit

    def of_cleanup(self, name: str) -> tuple[str, ...]:
        """Return the hooks of a cleanup node."""
        return self._set(name, "pre-delete", "post-delete") if self.action == "DELETE" else ()

    def _set(self, name: str, *hooks: str) -> tuple[str, ...]:
        hook_names = self.registry.hooks(name)
        return tuple(hook for hook in hooks if hook in hook_names)


def before(visit: ResourceVisit, step: Step) -> str | None:
    """Return the hook at which a visit pauses instead of taking a step.

    An open operation is completed before a pause.
    """
    match step:
        case Create():
            hook = "pre-create"
        case Compare():
            hook = "pre-update"
        case Delete() | DropRow(retained=True):
            hook = "pre-delete"
        case _:
            return None
    is_open = visit.resource.op is not None
    return hook if hook in visit.hooks and not is_open else None


def after(visit: ResourceVisit, outcome: Outcome, action: str) -> str | None:
    """Return the hook at which a visit pauses after its step, before its dependents are released."""
    match outcome:
        case Ready() if action in ("CREATE", "UPDATE"):
            hook = f"post-{action.lower()}"
        case Deleted(silent=False):
            hook = "post-delete"
        case _:
            return None
    return hook if hook in visit.hooks else None


def outcome_after_hooks(visit: ResourceVisit, outcome: Outcome) -> Outcome:
    """Return the outcome of a node with hooks.

    An operation of an older traversal may end in the desired state. With a hook before the update, the node
    is visited again, so that it reaches that hook.
    """
    is_open = visit.resource.op is not None
    if isinstance(outcome, Ready) and is_open and "pre-update" in visit.hooks:
        return PreviousOperationEnded(outcome.observation)
    return outcome
