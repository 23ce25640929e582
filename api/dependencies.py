"""Dependencies of the application, and their access from a view."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import cast

from flask import current_app, g

from orchestrator.config import Settings
from orchestrator.engine.messages import CheckMessage, Message
from orchestrator.json_types import JsonMapping
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.outputs.live_attributes import LiveReader
from orchestrator.operations.outputs.outputs import Output
from orchestrator.operations.outputs.signal_access import without_signal_access
from orchestrator.operations.preview.create import CreatePreview
from orchestrator.operations.preview.update import UpdatePreview
from orchestrator.operations.quotas import CachedQuotas
from orchestrator.operations.stacks.create_delete import Accepted
from orchestrator.resources.registry import Registry
from orchestrator.security.caller import Caller
from orchestrator.security.encryption import Cipher
from orchestrator.security.policy import allowed, policy_of
from orchestrator.store.connections.database import Database
from orchestrator.store.nodes.hooks import Paused
from orchestrator.store.stacks.stacks import StackIdentity, StackRow
from tasks.broker_stats import BrokerStats

SignalResult = tuple[Sequence[Message], JsonMapping | None]  # messages to publish, and the metadata


@dataclass(frozen=True, slots=True)
class Operations:
    """The operations that tests replace; other operations are imported directly."""

    create: Callable[[OperationContext, Body], Accepted]
    delete: Callable[[OperationContext, StackRow], Sequence[CheckMessage]]
    update: Callable[..., Accepted]
    start_action: Callable[..., Sequence[Message]]
    signal: Callable[[OperationContext, StackIdentity, str, Body], Sequence[Message]]
    signal_by_url: Callable[..., SignalResult]
    mark_unhealthy: Callable[[OperationContext, StackRow, str, Body], None]
    pending_hooks: Callable[..., Sequence[Paused]]
    validate: Callable[..., JsonMapping]
    resolve_outputs: Callable[
        [Database, Cipher, StackRow, Collection[str] | None, LiveReader | None], Sequence[Output]
    ]
    roll_back: Callable[[OperationContext, StackRow, int], Sequence[CheckMessage]]
    diff_revisions: Callable[[OperationContext, StackRow, int, int], JsonMapping]
    preview_create: Callable[[OperationContext, Body], CreatePreview]
    preview_update: Callable[..., UpdatePreview]
    signal_fast: Callable[..., SignalResult | None] | None = None  # None: no fast path


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
    return cast(Dependencies, current_app.extensions["dependencies"])


def caller() -> Caller:
    """Return the caller of the request; set before any view of a project runs."""
    return cast(Caller, g.caller)


def operation_context() -> OperationContext:
    """Return the context of an operation."""
    deps = dependencies()
    quotas = cast(CachedQuotas, current_app.extensions["quotas"])
    settings = quotas.settings_of(caller().project_id)
    return OperationContext(deps.database, deps.cipher, caller(), settings, deps.types)


def outputs_of(
    stack: StackRow, keys: Collection[str] | None = None, *, live: bool = True
) -> Sequence[Output]:
    """Return the outputs of a stack, all or those with `keys`; with `live` or with recorded attributes.

    Values with which the stack can be signalled are masked for a caller who may not signal.
    """
    deps = dependencies()
    reader = LiveReader(operation_context(), stack) if live else None
    resolved = deps.operations.resolve_outputs(deps.database, deps.cipher, stack, keys, reader)
    if allowed(policy_of(deps.settings), "resource:signal", caller()):
        return resolved
    return without_signal_access(deps.database, deps.cipher, stack, resolved)
