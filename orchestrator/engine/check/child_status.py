"""The status of a child stack, as a visit to its parent's resource sees it: pure
(docs/internals/engine-semantics.md §13).

The resource records which traversal of the child it waits for. The visit after it reads the status of the
child and never infers success (docs/internals/protocol.md rule 12).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from orchestrator.json_types import JsonMapping, JsonObject

REQUEST_KEY: Final = "child's traversal"  # a key next to the type's own data
REQUESTED_BY_KEY: Final = "parent's traversal"  # a further key, so that workers of 0.1 can read the request
ADOPTED_KEY: Final = "what is there inside"  # a key: resources that the new child adopts
Standing = Literal["none", "running", "elsewhere", "done", "failed"]
Verb = Literal["create", "update", "delete", "act", "wait", "pause"]

_PLACED: Final = re.compile(r"(\w+: )?(resources\..*)", re.DOTALL)


class ChildState(NamedTuple):
    """A child stack as recorded."""

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
    stale: bool = False  # changed independently since the last request
    halted: bool = False  # starts no more operations: it has failed, or its parent has

    @property
    def in_progress(self) -> bool:
        """Whether an action is in progress."""
        return self.status == "IN_PROGRESS"


class ChildRequest(NamedTuple):
    """A request to the child: the traversal that it started, the number of the type's step, and the parent's
    traversal that requested it (None if it is unknown).
    """

    traversal: int
    turn: int
    parent_traversal: int | None = None


def split_request(data: JsonMapping) -> tuple[ChildRequest | None, JsonObject]:
    """Return the request to the child, and the type's own data."""
    kept = dict(data)
    request, requested_by = kept.pop(REQUEST_KEY, None), kept.pop(REQUESTED_BY_KEY, None)
    return (None if request is None else ChildRequest(request[0], request[1], requested_by)), kept


def with_request(kept: JsonMapping, request: ChildRequest | None) -> JsonObject:
    """Return the type's data with the request to the child."""
    if request is None:
        return dict(kept)
    stored = {**kept, REQUEST_KEY: [request.traversal, request.turn]}
    if request.parent_traversal is not None:
        stored[REQUESTED_BY_KEY] = request.parent_traversal
    return stored


def child_status(child: ChildState | None, request: ChildRequest | None) -> Standing:
    """Return the status of a child with respect to a request.

    `elsewhere`: a newer traversal was started independently; `none`: no child exists.
    """
    if child is None or child.gone:
        return "none"
    if child.in_progress:
        return "running"
    if request is None or child.traversal != request.traversal:
        return "elsewhere"
    return "done" if child.status == "COMPLETE" else "failed"


def is_outdated(child: ChildState | None, request: ChildRequest | None, parent_traversal: int) -> bool:
    """Return whether the child failed, or will fail, in an operation of an older traversal of its parent.

    Its failure does not fail the newer traversal, which requests the child again.
    """
    if child is None or request is None or request.parent_traversal in (None, parent_traversal):
        return False
    return child.halted if child.in_progress else child_status(child, request) == "failed"


@dataclass(frozen=True, slots=True)
class ChildStep:
    """A transition of a child, in the transaction that lets the resource's node wait for its end.

    `wait` only waits, if the child is still as in `child`; `pause` waits `seconds` regardless of the child.
    """

    verb: Verb
    child: ChildState | None
    action: str = ""  # for `act`
    desired: Any = None  # the desired child, for `create` and `update`; the uuid for a SNAPSHOT
    turn: int = 0
    seconds: float | None = None


def flattened(reason: str, name: str) -> str:
    """Return a failure of a child's resource as a failure of the parent stack, with the whole path."""
    match = _PLACED.fullmatch(reason)
    if match is None:
        return f"Error: resources.{name}: {reason}"
    return f"{match[1] or ''}resources.{name}.{match[2]}"
