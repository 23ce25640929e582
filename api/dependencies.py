"""The application, its state, and the access of a view to them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from flask import Flask, current_app, g

from api.limits.failed_logins import FailedLogins
from api.limits.hung_requests import HungRequests
from api.limits.rate_limits import RateLimits
from orchestrator.config import Settings
from orchestrator.engine.messages import CheckMessage, Message
from orchestrator.json_types import JsonMapping
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.outputs.live_attributes import LiveReader
from orchestrator.operations.outputs.outputs import Output
from orchestrator.operations.outputs.signal_access import without_signal_access
from orchestrator.operations.preview.create import CreatePreview
from orchestrator.operations.preview.update import UpdatePreview
from orchestrator.operations.quotas.limits import CachedQuotas
from orchestrator.operations.stacks.create_delete import Accepted
from orchestrator.resources.registry import Registry
from orchestrator.security.authenticators import Authenticator, authenticator
from orchestrator.security.caller import Caller
from orchestrator.security.cfn_callers import CfnCallers
from orchestrator.security.encryption import Cipher
from orchestrator.security.policy import allowed, policy_of
from orchestrator.store.connections.database import Database
from orchestrator.store.nodes.hooks import Paused
from orchestrator.store.stacks.stacks import StackIdentity, StackRow
from tasks.broker_stats import BrokerStats

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

Wsgi = Callable[["WSGIEnvironment", "StartResponse"], Iterable[bytes]]
P = TypeVar("P")
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
    local: bool = False  # requests name this machine as their host: the cloud is simulated


@dataclass(frozen=True, slots=True)
class AppState:
    """The state shared by the requests of a process."""

    dependencies: Dependencies
    authenticate: Authenticator
    query_callers: CfnCallers
    quotas: CachedQuotas
    failed_logins: FailedLogins
    rate_limits: RateLimits
    hung_requests: HungRequests
    parts: dict[type, object] = field(default_factory=dict)  # by their class, created on first use

    @classmethod
    def of(cls, deps: Dependencies) -> AppState:
        """Return the state of a new application.

        Raises:
            Misconfigured: the authentication settings are incomplete.
        """
        quotas = CachedQuotas(deps.database, deps.settings)
        return cls(
            deps,
            authenticator(deps.settings, deps.database),
            CfnCallers(deps.settings, deps.database, deps.cipher),
            quotas,
            FailedLogins(deps.settings),
            RateLimits(deps.settings, quotas),
            HungRequests(deps.database),
        )

    def part(self, kind: type[P], create: Callable[[], P]) -> P:
        """Return the part of a class; the first call creates it."""
        found = self.parts.get(kind)
        if not isinstance(found, kind):
            found = self.parts.setdefault(kind, create())
        return cast(P, found)

    def close(self) -> None:
        """End the threads of the parts, the last part first."""
        for part in reversed(self.parts.values()):
            getattr(part, "close", lambda: None)()


class Layer(NamedTuple):
    """A WSGI layer around an application."""

    name: str
    wrap: Callable[[Wsgi, AppState], Wsgi]


class Application(Flask):
    """A Flask application with its state, behind WSGI layers."""

    def __init__(
        self, name: str, state: AppState, layers: Sequence[Layer] = (), pages: str = "templates"
    ) -> None:
        """Create it with the layers in the order that a request passes them; `pages` is a folder."""
        super().__init__(name, static_folder=None, template_folder=pages)
        self.url_map.merge_slashes = False
        self.state = state
        self._entry: Wsgi = super().wsgi_app
        for layer in reversed(layers):
            self._entry = layer.wrap(self._entry, state)

    def wsgi_app(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Pass a request through the layers."""
        return self._entry(environ, start_response)


def app_state() -> AppState:
    """Return the state of the current application."""
    return cast(Application, current_app).state


def dependencies() -> Dependencies:
    """Return the dependencies of the current application."""
    return app_state().dependencies


def caller() -> Caller:
    """Return the caller of the request; set before any view of a project runs."""
    return cast(Caller, g.caller)


def operation_context() -> OperationContext:
    """Return the context of an operation."""
    deps = dependencies()
    settings = app_state().quotas.settings_of(caller().project_id)
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
