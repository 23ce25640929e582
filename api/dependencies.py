"""Dependencies of the application, and their access from a view."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from flask import current_app, g

from orchestrator.config import Settings
from orchestrator.engine.messages import CheckMessage, Message
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.preview.create import CreatePreview
from orchestrator.operations.preview.update import UpdatePreview
from orchestrator.resources.registry import Registry
from orchestrator.security.caller import Caller
from orchestrator.security.encryption import Cipher
from orchestrator.store.connections.database import Database
from orchestrator.store.nodes.hooks import Paused
from orchestrator.store.signals.ingest import SignalAddress
from orchestrator.store.stacks.stacks import StackIdentity, StackRow
from tasks.broker_stats import BrokerStats


class Accepted(Protocol):
    """A stack that was taken on, and whom to tell."""

    @property
    def uuid(self) -> str:
        """The stack's id."""

    @property
    def name(self) -> str:
        """The stack's name."""

    @property
    def rings(self) -> Sequence[CheckMessage]:
        """What to publish, now that it is committed."""


class Output(Protocol):
    """One output, worked out or not."""

    @property
    def key(self) -> str:
        """Its name."""

    @property
    def description(self) -> str:
        """What the template says it is."""

    @property
    def value(self) -> Any:
        """What it came to, None with an error."""

    @property
    def error(self) -> str | None:
        """Why there is no value."""


class Update(Protocol):
    """Accepts a new template for a stack."""

    def __call__(
        self, context: OperationContext, stack: StackRow, body: Body, *, patch: bool = False
    ) -> Accepted:
        """Return what to enqueue; see `orchestrator.operations.stacks.update`."""


class PreviewUpdate(Protocol):
    """Says what another template would do to a stack."""

    def __call__(
        self,
        context: OperationContext,
        stack: StackRow,
        body: Body,
        *,
        patch: bool = False,
        show_nested: bool = False,
    ) -> UpdatePreview:
        """Return what would become of each resource; see `orchestrator.operations.preview.update`."""


class Validate(Protocol):
    """Checks a template."""

    def __call__(self, context: OperationContext, body: Body, **how: bool) -> Mapping[str, Any]:
        """Return what the template asks for; see `orchestrator.operations.validation.template_report`."""


class Waiting(Protocol):
    """Tells who waits at a hook."""

    def __call__(
        self,
        context: OperationContext,
        stack: StackRow,
        after: tuple[dt.datetime, int] | None = None,
        limit: int | None = None,
    ) -> Sequence[Paused]:
        """Return who waits; see `orchestrator.operations.signals.accept`."""


class SignalByUrl(Protocol):
    """Accepts a signal from who has a signed URL."""

    def __call__(
        self, context: OperationContext, name: str, body: Body, *, shown: bool
    ) -> tuple[Sequence[Message], Mapping[str, Any] | None]:
        """Return what to enqueue, and the metadata; see `orchestrator.operations.signals.accept`."""


class SignalSoon(Protocol):
    """Accepts a signal that is plainly good."""

    def __call__(
        self, context: OperationContext, address: SignalAddress, body: Body, *, by_url: bool, shown: bool
    ) -> tuple[Sequence[Message], Mapping[str, Any] | None] | None:
        """Return what to enqueue, and the metadata; see `orchestrator.operations.signals.accept`."""


@dataclass(frozen=True, slots=True)
class Operations:
    """The operations that tests replace; other operations are imported directly."""

    create: Callable[[OperationContext, Body], Accepted]
    delete: Callable[[OperationContext, StackRow], Sequence[CheckMessage]]
    update: Update
    start_action: Callable[[OperationContext, StackRow, Body], Sequence[CheckMessage]]
    signal: Callable[[OperationContext, StackIdentity, str, Body], Sequence[Message]]
    signal_by_url: SignalByUrl
    mark_unhealthy: Callable[[OperationContext, StackRow, str, Body], None]
    pending_hooks: Waiting
    validate: Validate
    resolve_outputs: Callable[[Database, Cipher, StackRow, Collection[str] | None], Sequence[Output]]
    roll_back: Callable[[OperationContext, StackRow, int], Sequence[CheckMessage]]
    diff_revisions: Callable[[OperationContext, StackRow, int, int], Mapping[str, Any]]
    preview_create: Callable[[OperationContext, Body], CreatePreview]
    preview_update: PreviewUpdate
    signal_fast: SignalSoon | None = None  # None: there is no short way for signals


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Everything a view needs except its request."""

    settings: Settings
    database: Database
    cipher: Cipher
    types: Registry
    operations: Operations
    publish: Callable[[Sequence[Message]], None]  # after the commit; never raises for an unreachable broker
    broker_stats: BrokerStats | None = None  # None if no broker is configured


def dependencies() -> Dependencies:
    """Return the dependencies of the current application."""
    return cast(Dependencies, current_app.extensions["parts"])


def caller() -> Caller:
    """Return the caller of the request; set before any view of a project runs."""
    return cast(Caller, g.caller)


def operation_context() -> OperationContext:
    """Return the context of an operation."""
    has = dependencies()
    return OperationContext(has.database, has.cipher, caller(), has.settings, has.types)
