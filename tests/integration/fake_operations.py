"""A fake of the operations behind the API, with prepared answers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.engine.messages import CheckMessage, Message, SignalMessage
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.outputs.live_attributes import LiveReader
from orchestrator.operations.preview.create import CreatePreview
from orchestrator.operations.preview.update import UpdatePreview
from orchestrator.security.encryption import Cipher
from orchestrator.store.connections.database import Database
from orchestrator.store.nodes.hooks import Paused
from orchestrator.store.stacks.stacks import StackIdentity, StackRow


@dataclass(frozen=True)
class Accepted:
    uuid: str
    name: str
    messages: list[CheckMessage]
    warnings: Sequence[Any] = ()


@dataclass(frozen=True)
class Output:
    key: str
    description: str
    value: Any
    error: str | None = None
    secret: bool = False


@dataclass
class Neighbour:
    """A fake of the operations: gives prepared answers and records its calls."""

    bodies: list[bytes] = field(default_factory=list)
    in_files: list[Path | None] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    published: list[CheckMessage] = field(default_factory=list)
    rolled_back: list[tuple[str, int]] = field(default_factory=list)
    projects: list[str] = field(default_factory=list)
    paused: list[Any] = field(default_factory=list)  # resources paused at a hook
    asked_after: Any = None  # of whom there is on
    patched: bool | None = None  # whether the last update was a PATCH
    error: Exception | None = None

    def create(self, context: OperationContext, body: Body) -> Accepted:
        self._take(context, body)
        return Accepted("7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01", "made", [CheckMessage(1, 1, "check")])

    def delete(self, context: OperationContext, stack: StackRow) -> Sequence[CheckMessage]:
        self.deleted.append(stack.name)
        return [CheckMessage(2, 1, "check")]

    def act(
        self, context: OperationContext, stack: StackRow, body: Body, *, wait: bool = False
    ) -> Sequence[CheckMessage]:
        self._take(context, body)
        return [CheckMessage(4, 2, "check")]

    def signal(
        self, context: OperationContext, stack: StackIdentity, name: str, body: Body
    ) -> Sequence[SignalMessage]:
        self._take(context, body)
        return [SignalMessage(5, name)]

    def signal_by_url(
        self, context: OperationContext, name: str, body: Body, *, shown: bool
    ) -> tuple[Sequence[SignalMessage], Mapping[str, Any] | None]:
        self._take(context, body)
        return [SignalMessage(5, name)], {"shown": shown}

    def mark_unhealthy(self, context: OperationContext, stack: StackRow, name: str, body: Body) -> None:
        self._take(context, body)

    def waiting(
        self,
        context: OperationContext,
        stack: StackRow,
        after: tuple[dt.datetime, int] | None = None,
        limit: int | None = None,
    ) -> Sequence[Paused]:
        self.asked_after = after
        return self.paused[:limit]

    def update(
        self, context: OperationContext, stack: StackRow, body: Body, *, patch: bool = False
    ) -> Accepted:
        self._take(context, body)
        self.patched = patch
        return Accepted("7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01", stack.name, [CheckMessage(3, 2, "check")])

    def validate(self, context: OperationContext, body: Body, **how: bool) -> Mapping[str, Any]:
        self._take(context, body)
        return {"Description": "fine"}

    def preview_create(self, context: OperationContext, body: Body) -> CreatePreview:
        self._take(context, body)
        return CreatePreview("made", "", {}, [], [], True, None, [])

    def preview_update(
        self,
        context: OperationContext,
        stack: StackRow,
        body: Body,
        *,
        patch: bool = False,
        show_nested: bool = False,
    ) -> UpdatePreview:
        self._take(context, body)
        self.patched = patch
        return UpdatePreview(frozenset(), {})

    def outputs(
        self,
        database: Database,
        cipher: Cipher,
        stack: StackRow,
        names: Collection[str] | None = None,
        live: LiveReader | None = None,
    ) -> list[Output]:
        recorded = [Output("it", "That one", [1, 2]), Output("broken", "", None, "no such thing")]
        return [output for output in recorded if names is None or output.key in names]

    def roll_back(self, context: OperationContext, stack: StackRow, number: int) -> Sequence[CheckMessage]:
        if self.error is not None:
            raise self.error
        self.rolled_back.append((stack.name, number))
        return [CheckMessage(5, 2, "check")]

    def differ(
        self, context: OperationContext, stack: StackRow, before: int, after: int
    ) -> Mapping[str, Any]:
        return {"resources": {"added": [], "removed": [], "changed": [], "asked": [before, after]}}

    def publish(self, rings: Sequence[Message]) -> None:
        self.published += rings

    def _take(self, context: OperationContext, body: Body) -> None:
        if self.error is not None:
            raise self.error
        self.bodies.append(body.read())
        self.in_files.append(body.path)
        self.projects.append(context.caller.project_id)
