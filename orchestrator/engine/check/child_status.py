"""What a visit to a nested resource makes of its child stack: pure (docs/internals/engine-semantics.md §13).

Which traversal of the child the resource waits for is kept with it. A visit that was woken reads how the
child is and never infers success (docs/internals/protocol.md rule 12).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

ASKED: Final = "child's traversal"  # kept beside a type's own notes
ADOPTED: Final = "what is there inside"  # kept until there is a child that takes it over
Standing = Literal["none", "running", "elsewhere", "done", "failed"]
Verb = Literal["create", "update", "delete", "act", "wait", "pause"]

_PLACED: Final = re.compile(r"(\w+: )?(resources\..*)", re.DOTALL)


class ChildState(NamedTuple):
    """A child stack as it is now."""

    id: int
    uuid: str
    name: str
    project_id: str
    traversal: int
    action: str
    status: str
    reason: str
    revision_id: int | None
    gone: bool
    disturbed: bool = False  # changed by others since it was last asked to be something


class ChildRequest(NamedTuple):
    """What was asked of the child: in which of its traversals, and which step of the type's that was."""

    traversal: int
    turn: int


def split_request(data: Mapping[str, Any]) -> tuple[ChildRequest | None, dict[str, Any]]:
    """Return what was asked of the child, and the type's own notes."""
    kept = dict(data)
    found = kept.pop(ASKED, None)
    return (None if found is None else ChildRequest(*found)), kept


def with_request(kept: Mapping[str, Any], asked: ChildRequest | None) -> dict[str, Any]:
    """Return what is kept of a type's notes and of what was asked of the child."""
    return dict(kept) if asked is None else {**kept, ASKED: list(asked)}


def child_status(child: ChildState | None, asked: ChildRequest | None) -> Standing:
    """Return how a child stands to what was asked of it.

    `elsewhere`: others have brought it to something else since; `none`: there is no child.
    """
    if child is None or child.gone:
        return "none"
    if child.status == "IN_PROGRESS":
        return "running"
    if asked is None or child.traversal != asked.traversal:
        return "elsewhere"
    return "done" if child.status == "COMPLETE" else "failed"


@dataclass(frozen=True, slots=True)
class ChildStep:
    """What is done to a child in the transaction that lets the resource's node wait for its end.

    `wait` only waits, if the child is still in `seen`; `pause` waits `seconds` with no regard to the child.
    """

    verb: Verb
    child: ChildState | None
    action: str = ""  # for `act`
    wanted: Any = None  # the child as it is to be, for `create` and `update`; the id of a SNAPSHOT
    turn: int = 0
    seconds: float | None = None


def flattened(reason: str, name: str) -> str:
    """Return a failure of a child's resource as one of the stack around it: one path, however deep."""
    found = _PLACED.fullmatch(reason)
    if found is None:
        return f"Error: resources.{name}: {reason}"
    return f"{found[1] or ''}resources.{name}.{found[2]}"
