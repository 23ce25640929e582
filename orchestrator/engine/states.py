"""Every state and every allowed move. The tables' CHECK constraints are made from this, and tests walk it.

A node is born `blocked` (or `queued` when nothing holds it back) and ends in `ready`, `failed` or `dropped`::

    blocked ── last requirement settled ──> queued ── claimed ──> checking ── settled ──> ready
                                              ^                      │ ├── not yet ─────> waiting
                                              ├──── due, lease lost ─┘ └── final error ─> failed
                                              └──── due ──────────────── waiting
    blocked, queued, waiting ── superseded, halted ──> dropped
"""

from __future__ import annotations

from typing import Final

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
RESOURCE_ACTIONS: Final = (
    "INIT",
    "CREATE",
    "DELETE",
    "UPDATE",
    "ROLLBACK",
    "SUSPEND",
    "RESUME",
    "ADOPT",
    "SNAPSHOT",
    "CHECK",
)
OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "DISCARD")  # open until their end was observed
NODE_KINDS: Final = ("plan", "update", "cleanup", "join", "finish")
NODE_STATES: Final = ("blocked", "queued", "checking", "waiting", "paused", "ready", "failed", "dropped")

NODE_MOVES: Final = frozenset(
    {
        ("blocked", "queued"),  # its last requirement settled
        ("queued", "checking"),  # claimed
        ("queued", "waiting"),  # somebody else holds its resource
        ("checking", "ready"),  # settled
        ("checking", "waiting"),  # not ready yet, or to be tried again
        ("checking", "failed"),  # final
        ("checking", "queued"),  # its lease was lost, or the claim was undone
        ("checking", "dropped"),  # its traversal is over
        ("checking", "paused"),  # a hook
        ("paused", "queued"),  # the hook was cleared
        ("waiting", "queued"),  # due, or woken
        ("blocked", "dropped"),
        ("queued", "dropped"),
        ("waiting", "dropped"),
        ("paused", "dropped"),
    }
)
NODE_ENDS: Final = frozenset({"ready", "failed", "dropped"})
