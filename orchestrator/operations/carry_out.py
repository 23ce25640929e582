"""Carry out one step: the plugin acts, then looks. No transaction is open here.

What comes back is the outcome and the resource as it is now; `operations/check.py` writes both down.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from orchestrator.engine.decide import Create, Delete, Discard, Drop, Forget, Impossible, Keep, Observe, Step
from orchestrator.engine.names import physical_name
from orchestrator.engine.outcome import (
    Failed,
    Gone,
    Kept,
    Outcome,
    Ready,
    Wait,
    failure_reason,
    judge_error,
    judge_observation,
)
from orchestrator.engine.properties import resolve_properties
from orchestrator.engine.visit import NodeData, Visit
from orchestrator.errors import ProviderError, ProviderSilent, Superseded
from orchestrator.operations.files import FileCache
from orchestrator.resources.base import Context, Observation, ResourceType
from orchestrator.security.encryption import Cipher
from orchestrator.template.definition import NOTHING, ResourceProxy, StackDefinition
from orchestrator.template.functions import ALL
from orchestrator.template.parameters import ParameterValues


@dataclass(slots=True)
class Known:
    """A resource's values in the open, sealed in its row or not: as they were, then as they are."""

    properties: Mapping[str, Any] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] | None = None
    physical_id: str | None = None
    reference_id: str | None = None
    attempt: int = 0
    op: str | None = None
    action: str = "INIT"
    secret: bool = False
    unanswered: bool = False  # a create was sent and its fate is unknown: it may still be carried out
    requires: tuple[int, ...] = ()
    input_digests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """How a visit ended, with the resource as it is now; `started` if its operation began in this visit."""

    outcome: Outcome
    known: Known
    started: bool = False


def is_told(visit: Visit, known: Known) -> bool:
    """Whether users have already read that this action of the resource is in progress."""
    resource = visit.resource
    return resource is not None and (resource.action, resource.status) == (known.action, "IN_PROGRESS")


class Unwritten(Exception):
    """Our own database failed before anything was asked for."""


Begin = Callable[[Visit, Known], bool]  # opens an operation durably; False: the lease is lost


def known_before(visit: Visit, cipher: Cipher) -> Known:
    """Return the visited resource's stored values, opened."""
    resource = visit.resource
    assert resource is not None
    opened: Mapping[str, Any] = cipher.open(resource.sealed.encode()) if resource.sealed else {}
    return Known(
        properties=opened.get("properties", resource.properties) or {},
        attributes=opened.get("attributes", resource.attributes) or {},
        data=opened.get("data", resource.data) or {},
        metadata=resource.metadata,
        physical_id=resource.physical_id,
        reference_id=opened.get("reference_id", resource.reference_id),
        attempt=resource.attempt,
        op=resource.op,
        action=resource.action,
        secret=bool(opened),
        requires=tuple(resource.requires),
        input_digests=("",) * len(resource.requires),
    )


def proxy(data: NodeData, cipher: Cipher, used: Collection[str] = (ALL,)) -> ResourceProxy:
    """Return what functions may see of a requirement: of its attributes those `used`."""
    opened: Mapping[str, Any] = cipher.open(data.sealed.encode()) if data.sealed else {}
    attributes = opened.get("attributes", data.attributes) or {}
    if opened and ALL not in used:
        attributes = {name: attributes[name] for name in used if name in attributes}
    return ResourceProxy(
        name=data.name,
        reference_id=opened.get("reference_id", data.reference_id) or data.physical_id,
        attributes=attributes,
        action=data.action,
        status=data.status,
        secret=bool(opened),
    )


class Plugin:
    """One visit's dealings with the resource's type. `known` keeps step: what exists must reach the row."""

    def __init__(
        self,
        visit: Visit,
        kind: ResourceType,
        values: ParameterValues,
        cipher: Cipher,
        begin: Begin,
        files: FileCache,
    ) -> None:
        """`begin` opens an operation before a provider is called."""
        assert visit.resource is not None
        self.visit, self.resource, self.kind = visit, visit.resource, kind
        self.values, self.cipher, self.begin, self.files = values, cipher, begin, files
        self.begun = False
        self.known = known_before(visit, cipher)
        self.physical_name = physical_name(visit.stack.name, self.resource.name, self.resource.uuid)

    def carry_out(self, step: Step, retries_left: int) -> Done:
        """Do what was decided and look; errors of the type become outcomes."""
        if self.visit.kind == "cleanup":
            self.known.action = "DELETE"
        try:
            return self._do(step, retries_left)
        except (Superseded, Unwritten):
            raise
        except Exception as error:
            outcome = judge_error(
                error, name=self.resource.name, retries_left=retries_left, retry_count=self.visit.retry_count
            )
            return Done(outcome, self.known, started=not self.begun and not is_told(self.visit, self.known))

    def _do(self, step: Step, retries_left: int) -> Done:
        known = self.known
        match step:
            case Create(look_first=look_first, wait_seconds=seconds):
                return self._create(look_first, seconds, retries_left)
            case Observe():
                return self._judge(self._observe(), retries_left, started=False)
            case Discard():
                ctx, physical_id = self._context("DELETE"), known.physical_id or ""
                self.kind.delete(ctx, physical_id)
                seen = self.kind.observe(ctx, physical_id)
                if seen.exists:
                    return Done(Wait(seen.retry_after, "removing what went wrong", discard=True), known)
                known.physical_id = known.op = known.reference_id = None
                known.data, known.attributes = {}, {}
                return self._create(False, 0.0, retries_left)
            case Delete(look_first=look_first, wait_seconds=seconds):
                return self._delete(look_first, seconds, retries_left)
            case Forget(retained=retained):
                known.action = "DELETE"
                return Done(Gone(silent=not retained), known)
            case Impossible(reason=reason):
                return Done(Failed(failure_reason("OutcomeUnknown", self.resource.name, reason)), known)
            case Keep() | Drop():
                return Done(Kept(), known)

    def _create(self, look_first: bool, seconds: float, retries_left: int) -> Done:
        known, kind = self.known, self.kind
        started = known.op is None
        external = self._resolve()
        if external is not None:
            return self._take_over(external)
        if started:
            known.attempt, known.action = known.attempt + 1, "CREATE"
            if kind.calls_out:
                self._begin()
        known.op = "CREATE"
        ctx = self._context("CREATE")
        found = kind.find(ctx, ctx.token) if look_first or (kind.calls_out and not started) else None
        if found is not None:
            known.physical_id = found
        elif seconds > 0:
            return Done(Wait(seconds, "an earlier request for it may still be carried out"), known)
        else:
            if kind.calls_out and not self.begun:  # looking took its time: is it still ours to make?
                self._begin()
            self._ask(ctx)
        return self._judge(self._observe(), retries_left, started=started and not kind.calls_out)

    def _ask(self, ctx: Context) -> None:
        """Send the create. Until it is answered, it may be carried out at any time."""
        known = self.known
        known.unanswered = self.kind.calls_out
        try:
            created = self.kind.create(ctx, known.properties)
        except ProviderError as error:
            known.unanswered = isinstance(error, ProviderSilent)  # a refusal is an answer
            raise
        known.unanswered = False
        known.physical_id, known.data = created.physical_id, created.data
        known.secret = known.secret or created.secret

    def _begin(self) -> None:
        """Open the operation, durably, before anything is asked for."""
        if not self.begin(self.visit, self.known):
            raise Superseded("the lease was lost before anything was asked for")
        self.begun = True

    def _delete(self, look_first: bool, seconds: float, retries_left: int) -> Done:
        known = self.known
        started = known.op != "DELETE"
        if known.physical_id is None and look_first:
            ctx = self._context("DELETE")
            found = self.kind.find(ctx, ctx.token)
            if found is None:
                if seconds > 0:
                    return Done(Wait(seconds, "an earlier request for it may still be carried out"), known)
                return Done(Gone(), known, started=True)
            known.physical_id = found
        known.op = "DELETE"
        if started and self.kind.calls_out:
            self._begin()
        ctx, physical_id = self._context("DELETE", 0.0 if started else None), known.physical_id or ""
        self.kind.delete(ctx, physical_id)
        seen = self.kind.observe(ctx, physical_id)
        return self._judge(seen, retries_left, started=started and not self.kind.calls_out, deleting=True)

    def _judge(self, seen: Observation, retries_left: int, *, started: bool, deleting: bool = False) -> Done:
        known = self.known
        outcome = judge_observation(
            seen,
            name=self.resource.name,
            deleting=deleting,
            retries_left=retries_left,
            retry_count=self.visit.retry_count,
        )
        if isinstance(outcome, Ready):
            known.attributes, known.reference_id = seen.attributes, seen.reference_id
            declared = self.kind.attributes
            if any(declared[name].secret for name in seen.attributes if name in declared):
                known.secret = True
        return Done(outcome, known, started)

    def _observe(self) -> Observation:
        elapsed = None if self.resource.op == "CREATE" else 0.0
        return self.kind.observe(self._context("CREATE", elapsed), self.known.physical_id or "")

    def _take_over(self, physical_id: str) -> Done:
        """Take a thing that others made for the resource: it is looked at, and nothing is asked of it."""
        known = self.known
        known.physical_id, known.action = physical_id, "CHECK"
        known.attempt = max(known.attempt, 1)
        seen = self.kind.observe(self._context("CHECK", 0.0), physical_id)
        if not seen.exists:
            seen = replace(seen, exists=True, error=seen.error or f"there is no {physical_id}")
        return self._judge(replace(seen, ready=True), 0, started=True)

    def _resolve(self) -> str | None:
        """Bring properties, metadata and requirements to what they are now; return the `external_id`."""
        definition, known, name = self.visit.definition, self.known, self.resource.name
        assert definition is not None
        inputs = sorted(self.visit.inputs)  # by id
        body, used = definition.body, definition.dep_attrs
        proxies = {data.name: proxy(data, self.cipher, used.get(data.name, ())) for data in inputs}
        view = StackDefinition(
            body["version"],
            self.values,
            proxies,
            self.files.reader(body.get("files", NOTHING)),
            mappings=body.get("mappings", NOTHING),
        )
        known.properties = resolve_properties(body, view, self.kind, name)
        metadata = body.get("metadata")
        known.metadata = view.resolve(metadata, f"resources.{name}.metadata") if metadata else metadata
        known.secret = view.touched_secret
        known.requires = tuple([data.id for data in inputs])
        known.input_digests = tuple([input_digest(proxies[data.name]) for data in inputs])
        external = body.get("external_id")
        if external is None:
            return None
        external = view.resolve(external, f"resources.{name}.external_id")
        return None if external is None else str(external)

    def _context(self, action: str, elapsed: float | None = None) -> Context:
        known = self.known
        return Context(
            name=self.resource.name,
            physical_name=self.physical_name,
            token=f"{self.resource.uuid}-{known.attempt}",
            action=action,
            elapsed_seconds=(self.resource.op_seconds or 0.0) if elapsed is None else elapsed,
            properties=known.properties,
            data=known.data,
            stack_timeout_seconds=self.visit.stack.timeout_seconds or 3600.0,
        )


def input_digest(seen: ResourceProxy) -> str:
    """Return a digest of what a resource was built with from one requirement (PROTOCOL.md 7)."""
    text = orjson.dumps([seen.reference_id, seen.attributes], option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=12).hexdigest()
