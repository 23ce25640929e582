"""Every state and every allowed move. The tables' words are made from this, and a test watches every move.

A node is born `blocked` (or `queued` when nothing holds it back) and ends in `ready`, `failed` or `dropped`::

    blocked ── last requirement settled ──> queued ── claimed ──> checking ── settled ──> ready
                                              ^                      │ ├── not yet ─────> waiting
                                              ├──── due, lease lost ─┘ └── final error ─> failed
                                              └──── due ──────────────── waiting
    queued, checking ── a hook ──> paused ── cleared ──> queued
    blocked, queued, waiting, paused ── superseded, halted ──> dropped

Types that call nobody go from `queued` to `ready`, `waiting` or `failed` at once
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
# How a revision fared; none while it is being carried out.
Outcome = Literal["complete", "failed", "cancelled", "superseded"]
OUTCOMES: Final = get_args(Outcome)
# Those that visit what is there and bring the stack to no other template.
ACTS: Final = frozenset({"CHECK", "SUSPEND", "RESUME", "SNAPSHOT"})
# Actions whose completion makes the desired revision the last good one.
TEMPLATE_ACTIONS: Final = ("CREATE", "UPDATE", "ROLLBACK", "ADOPT", "RESTORE")
RESOURCE_ACTIONS: Final = ("INIT", *(action for action in STACK_ACTIONS if action != "RESTORE"))
# Open until their end was observed.
# A CHECK is one of a nested stack: all else is looked at at once.
OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "DISCARD", "SUSPEND", "RESUME", "SNAPSHOT", "CHECK")
NODE_KINDS: Final = ("plan", "update", "cleanup", "join", "finish")
RESOURCE_KINDS: Final = ("update", "cleanup")  # of nodes that visit a resource
INNER_KINDS: Final = ("update", "cleanup", "join")  # of all but a traversal's first and last node
NODE_STATES: Final = ("blocked", "queued", "checking", "waiting", "paused", "ready", "failed", "dropped")

NODE_MOVES: Final = frozenset(
    {
        ("blocked", "queued"),  # its last requirement settled
        ("queued", "checking"),  # claimed
        ("queued", "ready"),  # of a type that calls nobody: claimed and settled in one
        ("queued", "failed"),
        ("queued", "waiting"),  # not ready yet, or somebody else holds its resource
        ("queued", "paused"),  # a hook
        ("checking", "ready"),  # settled
        ("checking", "waiting"),  # not ready yet, to be tried again, or its lease was lost once more
        ("checking", "failed"),  # final
        (
            "checking",
            "queued",
        ),  # its lease was lost, or it goes round again: ended for an older one, replaced
        ("checking", "blocked"),  # a finish node: leftovers are to go before it
        ("waiting", "queued"),  # due, or woken
        ("waiting", "failed"),  # thought lost, but its worker still had its resource
        ("checking", "paused"),  # a hook
        ("paused", "queued"),  # the hook was cleared
        ("blocked", "failed"),  # a finish node, of a traversal that failed
        ("blocked", "dropped"),  # its traversal is over: this and the following
        ("queued", "dropped"),
        ("checking", "dropped"),
        ("waiting", "dropped"),
        ("paused", "dropped"),
    }
)
NODE_ENDS: Final = ("ready", "failed", "dropped")
# States of nodes that hold, or wait for, a resource; the first two are those of a visit.
STATES_AT_WORK: Final = ("checking", "waiting", "paused")
STATES_VISITED: Final = ("checking", "waiting")
