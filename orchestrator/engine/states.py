"""All states and all allowed moves. The enumerations of the tables use them; a test records every move.

A node starts `blocked` (or `queued` without requirements) and ends in `ready`, `failed` or `dropped`::

    blocked ── last requirement settled ──> queued ── claimed ──> checking ── settled ──> ready
                                              ^                      │ ├── not yet ─────> waiting
                                              ├──── due, lease lost ─┘ └── final error ─> failed
                                              └──── due ──────────────── waiting
    queued, checking ── a hook ──> paused ── cleared ──> queued
    blocked, queued, waiting, paused ── superseded, halted ──> dropped

Nodes of local types go from `queued` to `ready`, `waiting` or `failed` at once
(operations/adr/0001-settlement-claims-local-types.md).
"""

from __future__ import annotations

from typing import Final, Literal, get_args

STATUSES: Final = ("IN_PROGRESS", "COMPLETE", "FAILED")
STACK_ACTIONS: Final = (
    "CREATE",
    "DELETE",
    "UPDATE",
    "ROLLBACK",
    "SUSPEND",
    "RESUME",
    "ADOPT",
    "SNAPSHOT",
    "CHECK",
    "RESTORE",
)
# Outcomes of a revision; NULL while it is being applied.
Outcome = Literal["complete", "failed", "cancelled", "superseded"]
OUTCOMES: Final = get_args(Outcome)
# Actions on existing resources, without a new template.
ACTS: Final = frozenset({"CHECK", "SUSPEND", "RESUME", "SNAPSHOT"})
# Actions whose completion makes the desired revision the last good revision.
TEMPLATE_ACTIONS: Final = ("CREATE", "UPDATE", "ROLLBACK", "ADOPT", "RESTORE")
RESOURCE_ACTIONS: Final = ("INIT", *(action for action in STACK_ACTIONS if action != "RESTORE"))
# Open until their end is observed. CHECK is open only for nested stacks: other checks end at once.
OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "DISCARD", "SUSPEND", "RESUME", "SNAPSHOT", "CHECK")
NODE_KINDS: Final = ("plan", "update", "cleanup", "join", "finish")
RESOURCE_KINDS: Final = ("update", "cleanup")  # of nodes that visit a resource
NODE_STATES: Final = ("blocked", "queued", "checking", "waiting", "paused", "ready", "failed", "dropped")

NODE_MOVES: Final = frozenset(
    {
        ("blocked", "queued"),  # its last requirement settled
        ("queued", "checking"),  # claimed
        ("queued", "ready"),  # of a local type: claimed and settled in the same statement
        ("queued", "failed"),
        ("queued", "waiting"),  # not ready yet, or another visit holds its resource
        ("queued", "paused"),  # a hook
        ("checking", "ready"),  # settled
        ("checking", "waiting"),  # not ready yet, to be retried, or its lease was lost again
        ("checking", "failed"),  # final
        (
            "checking",
            "queued",
        ),  # its lease was lost, or another visit follows: an older operation ended, or a replacement
        ("checking", "blocked"),  # a finish node: deposed resources are deleted first
        ("waiting", "queued"),  # due, or woken
        ("waiting", "failed"),  # its lease seemed lost, but its worker still held the resource
        ("checking", "paused"),  # a hook
        ("paused", "queued"),  # the hook was cleared
        ("blocked", "failed"),  # a finish node, of a traversal that failed
        ("blocked", "dropped"),  # its traversal is over, as in the moves below
        ("queued", "dropped"),
        ("checking", "dropped"),
        ("waiting", "dropped"),
        ("paused", "dropped"),
    }
)
NODE_ENDS: Final = ("ready", "failed", "dropped")
# States of nodes that hold, or wait for, a resource; the first two belong to a visit.
STATES_AT_WORK: Final = ("checking", "waiting", "paused")
STATES_VISITED: Final = ("checking", "waiting")


# Operations that a stack accepts in each state (docs/internals/design.md invariant 9), for information only:
# each operation checks the state itself, and a test compares both in every state.

# Suggestions by failed action; after any other action, an update continues.
_SUGGESTIONS: Final = {
    "DELETE": "delete it again",
    "SUSPEND": "suspend it again, or resume it",
    "RESUME": "resume it again",
    "SNAPSHOT": "the stack itself has no fault: try again",
    "CHECK": "an update replaces the resources with a fault",
}
_UPDATE: Final = "an update, with the same or a new template, continues from the current state"


def accepted(action: str, status: str) -> tuple[str, ...]:
    """Return the operations, by API name, that an existing stack in this state accepts."""
    if (action, status) == ("DELETE", "COMPLETE"):
        return ()
    found = ["delete"]
    if action != "SUSPEND":
        found.append("update")
    if (action, status) == ("UPDATE", "IN_PROGRESS"):
        found.append("cancel_update")
    if action in {"CREATE", "UPDATE"} and status == "IN_PROGRESS":
        found.append("cancel_without_rollback")
    found.append("check")
    found += [name for name in ("suspend", "resume") if status != "IN_PROGRESS" or action == name.upper()]
    return tuple(found)


def is_reached(action: str, revision_id: int | None, good_revision_id: int | None) -> bool:
    """Return whether a stack has reached its desired revision, and is not being deleted.

    `good_revision_id` is set when a traversal with a template is complete. Actions without a template keep
    it, so that a suspend after a failed update does not hide the failure.
    """
    return action != "DELETE" and revision_id is not None and revision_id == good_revision_id


def suggested_operations(action: str) -> str:
    """Return the suggested operations after a failed action, as text."""
    return _SUGGESTIONS.get(action, _UPDATE)
