"""Carry out one step: the plugin acts, then looks. No transaction is open here.

What comes back is the outcome and the resource as it is now; `operations/check.py` writes both down.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
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
from orchestrator.engine.validate import resolve_properties
from orchestrator.engine.visit import NodeData, Visit
from orchestrator.errors import ProviderError, ProviderSilent, Superseded
from orchestrator.resources.base import Context, Observation, ResourceType
from orchestrator.security.encryption import Cipher
from orchestrator.template.definition import ResourceProxy, StackDefinition
from orchestrator.template.parameters import ParameterValues


@dataclass(frozen=True, slots=True)
class Known:
    """A resource's values in the open: what its row holds, sealed or not."""

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


def proxy(data: NodeData, cipher: Cipher) -> ResourceProxy:
    """Return what functions may see of a requirement."""
    opened: Mapping[str, Any] = cipher.open(data.sealed.encode()) if data.sealed else {}
    return ResourceProxy(
        name=data.name,
        reference_id=opened.get("reference_id", data.reference_id) or data.physical_id,
        attributes=opened.get("attributes", data.attributes) or {},
        action=data.action,
        status=data.status,
        secret=bool(opened),
    )


class Plugin:
    """One visit's dealings with the resource's type."""

    def __init__(
        self, visit: Visit, kind: ResourceType, values: ParameterValues, cipher: Cipher, begin: Begin
    ) -> None:
        """`values` are the parameters of the stack's revision; `begin` opens an operation before a provider
        is called.
        """
        assert visit.resource is not None
        self.visit, self.resource, self.kind = visit, visit.resource, kind
        self.values, self.cipher, self.begin = values, cipher, begin
        self.begun = False

    def carry_out(self, step: Step, retries_left: int) -> Done:
        """Do what was decided and look; errors of the type become outcomes."""
        known = known_before(self.visit, self.cipher)
        if self.visit.kind == "cleanup":
            known = replace(known, action="DELETE")
        try:
            return self._do(step, known, retries_left)
        except (Superseded, Unwritten):
            raise
        except Exception as error:
            known = getattr(error, "known", known)
            outcome = judge_error(
                error, name=self.resource.name, retries_left=retries_left, retry_count=self.visit.retry_count
            )
            return Done(outcome, known, started=not self.begun and not is_told(self.visit, known))

    def _do(self, step: Step, known: Known, retries_left: int) -> Done:
        match step:
            case Create(look_first=look_first, wait_seconds=seconds):
                return self._create(known, look_first, seconds, retries_left)
            case Observe():
                return self._judge(known, self._observe(known), retries_left, started=False)
            case Discard():
                self.kind.delete(self._context(known, "DELETE"), known.physical_id or "")
                seen = self.kind.observe(self._context(known, "DELETE"), known.physical_id or "")
                if seen.exists:
                    return Done(Wait(seen.retry_after, "removing what went wrong", discard=True), known)
                fresh = replace(known, physical_id=None, op=None, data={}, attributes={}, reference_id=None)
                return self._create(fresh, False, 0.0, retries_left)
            case Delete(look_first=look_first, wait_seconds=seconds):
                return self._delete(known, look_first, seconds, retries_left)
            case Forget(retained=retained):
                return Done(Gone(silent=not retained), replace(known, action="DELETE"))
            case Impossible(reason=reason):
                return Done(Failed(failure_reason("OutcomeUnknown", self.resource.name, reason)), known)
            case Keep() | Drop():
                return Done(Kept(), known)

    def _create(self, known: Known, look_first: bool, seconds: float, retries_left: int) -> Done:
        started = known.op is None
        known = self._resolved(known)
        if started:
            known = replace(known, attempt=known.attempt + 1, action="CREATE")
            if self.kind.calls_out:
                self._begin(known)
        known = replace(known, op="CREATE")
        ctx = self._context(known, "CREATE")
        found = (
            self.kind.find(ctx, ctx.token) if look_first or (self.kind.calls_out and not started) else None
        )
        if found is None and seconds > 0:
            return Done(Wait(seconds, "an earlier request for it may still be carried out"), known)
        try:
            if found is None:
                if self.kind.calls_out and not self.begun:  # looking took its time: is it still ours to make?
                    self._begin(known)
                known = replace(known, unanswered=self.kind.calls_out)
                created = self.kind.create(ctx, known.properties)
                known = replace(
                    known,
                    physical_id=created.physical_id,
                    data=dict(created.data),
                    secret=known.secret or created.secret,
                    unanswered=False,
                )
            else:
                known = replace(known, physical_id=found)
            return self._judge(
                known, self._observe(known), retries_left, started=started and not self.kind.calls_out
            )
        except Exception as error:
            if isinstance(error, ProviderError) and not isinstance(error, ProviderSilent):
                known = replace(known, unanswered=False)  # it was refused: that is an answer
            error.known = known  # type: ignore[attr-defined]  # what is known to exist must reach the row
            raise

    def _begin(self, known: Known) -> None:
        """Open the operation, durably, before anything is asked for."""
        if not self.begin(self.visit, known):
            raise Superseded("the lease was lost before anything was asked for")
        self.begun = True

    def _delete(self, known: Known, look_first: bool, seconds: float, retries_left: int) -> Done:
        started = known.op != "DELETE"
        if known.physical_id is None and look_first:
            ctx = self._context(known, "DELETE")
            found = self.kind.find(ctx, ctx.token)
            if found is None:
                if seconds > 0:
                    return Done(Wait(seconds, "an earlier request for it may still be carried out"), known)
                return Done(Gone(), replace(known, action="DELETE"), started=True)
            known = replace(known, physical_id=found)
        known = replace(known, action="DELETE", op="DELETE")
        if started and self.kind.calls_out:
            self._begin(known)
        elapsed = 0.0 if started else None
        try:
            self.kind.delete(self._context(known, "DELETE", elapsed), known.physical_id or "")
            seen = self.kind.observe(self._context(known, "DELETE", elapsed), known.physical_id or "")
        except Exception as error:
            error.known = known  # type: ignore[attr-defined]
            raise
        return self._judge(
            known, seen, retries_left, started=started and not self.kind.calls_out, deleting=True
        )

    def _judge(
        self, known: Known, seen: Observation, retries_left: int, *, started: bool, deleting: bool = False
    ) -> Done:
        outcome = judge_observation(
            seen,
            name=self.resource.name,
            deleting=deleting,
            retries_left=retries_left,
            retry_count=self.visit.retry_count,
        )
        if isinstance(outcome, Ready):
            secret = known.secret or any(
                self.kind.attributes[name].secret for name in seen.attributes if name in self.kind.attributes
            )
            known = replace(
                known, attributes=dict(seen.attributes), reference_id=seen.reference_id, secret=secret
            )
        return Done(outcome, known, started)

    def _observe(self, known: Known) -> Observation:
        elapsed = None if self.resource.op == "CREATE" else 0.0
        return self.kind.observe(self._context(known, "CREATE", elapsed), known.physical_id or "")

    def _resolved(self, known: Known) -> Known:
        """Return `known` with properties, metadata and requirements as they are now."""
        definition = self.visit.definition
        assert definition is not None
        inputs = sorted(self.visit.inputs, key=lambda data: data.id)
        proxies = {data.name: proxy(data, self.cipher) for data in inputs}
        view = StackDefinition(definition.body["version"], self.values, proxies)
        properties = resolve_properties(definition.body, view, self.kind, self.resource.name)
        metadata = view.resolve(definition.body.get("metadata"), f"resources.{self.resource.name}.metadata")
        return replace(
            known,
            properties=properties,
            metadata=metadata,
            secret=view.touched_secret,
            requires=tuple(data.id for data in inputs),
            input_digests=tuple(input_digest(proxies[data.name]) for data in inputs),
        )

    def _context(self, known: Known, action: str, elapsed: float | None = None) -> Context:
        resource, stack = self.resource, self.visit.stack
        return Context(
            name=resource.name,
            physical_name=physical_name(stack.name, resource.name, resource.uuid),
            token=f"{resource.uuid}-{known.attempt}",
            action=action,
            elapsed_seconds=(resource.op_seconds or 0.0) if elapsed is None else elapsed,
            properties=known.properties,
            data=known.data,
            stack_timeout_seconds=stack.timeout_seconds or 3600.0,
        )


def input_digest(seen: ResourceProxy) -> str:
    """Return a digest of what a resource was built with from one requirement (PROTOCOL.md 7)."""
    text = orjson.dumps([seen.reference_id, seen.attributes], option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=12).hexdigest()
