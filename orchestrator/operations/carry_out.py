"""Carry out one step: the plugin acts, then looks. No transaction is open here.

What comes back is the outcome and the resource as it is now; `operations/check.py` writes both down.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from orchestrator.engine.decide import (
    Create,
    Delete,
    Discard,
    Drop,
    Forget,
    Impossible,
    Keep,
    Observe,
    Resend,
    Revise,
    Step,
)
from orchestrator.engine.names import physical_name
from orchestrator.engine.outcome import (
    Ended,
    Failed,
    Gone,
    Kept,
    Outcome,
    Ready,
    Replaced,
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
from orchestrator.schema.properties import immutable_changes, immutable_message
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
    input_digests: tuple[str, ...] = ()  # what each of them handed on
    value_digest: str | None = None  # of what this one hands on
    definition_id: int | None = None  # what it is being built from


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
        metadata=opened.get("metadata", resource.metadata),
        physical_id=resource.physical_id,
        reference_id=opened.get("reference_id", resource.reference_id),
        attempt=resource.attempt,
        op=resource.op,
        action=resource.action,
        secret=bool(opened),
        requires=tuple(resource.requires),
        input_digests=tuple(resource.input_digests),
        value_digest=resource.value_digest,
        definition_id=resource.definition_id,
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
            case Create(wait_seconds=seconds):
                return self._create(seconds, retries_left)
            case Observe():
                return self._continue(retries_left)
            case Revise():
                return self._revise()
            case Resend():
                return self._resend()
            case Discard():
                ctx, physical_id = self._context("DELETE"), known.physical_id or ""
                self.kind.delete(ctx, physical_id)
                seen = self.kind.observe(ctx, physical_id)
                if seen.exists:
                    return Done(Wait(seen.retry_after, "removing what went wrong", discard=True), known)
                known.physical_id = known.op = known.reference_id = None
                known.data, known.attributes = {}, {}
                return self._create(0.0, retries_left)
            case Delete(look_first=look_first, wait_seconds=seconds):
                return self._delete(look_first, seconds, retries_left)
            case Forget(retained=retained):
                known.action = "DELETE"
                return Done(Gone(silent=not retained), known)
            case Impossible(reason=reason):
                return Done(Failed(failure_reason("OutcomeUnknown", self.resource.name, reason)), known)
            case Keep() | Drop():
                return Done(Kept(), known)

    def _create(self, seconds: float, retries_left: int) -> Done:
        known, kind = self.known, self.kind
        other = self._other_type()
        if other is not None:  # begun for an older definition: what may have come of it is found and removed
            return Done(other, known)
        started = known.op is None
        if kind.calls_out and not started:  # as it was begun, for whichever definition
            ctx = self._context("CREATE")
            found = kind.find(ctx, ctx.token)
            if found is not None:
                known.physical_id = found
                return self._continue(retries_left)
            if seconds > 0:
                return Done(Wait(seconds, "an earlier request for it may still be carried out"), known)
        external = self._resolve()
        if external is not None:
            return self._take_over(external)
        if started:
            known.attempt, known.action = known.attempt + 1, "CREATE"
            if kind.calls_out:
                self._begin()
        known.op = "CREATE"
        if kind.calls_out and not self.begun:  # looking took its time: is it still ours to make?
            self._begin()
        self._ask(self._context("CREATE"))
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
            known.value_digest = value_digest(known)
            declared = self.kind.attributes
            if any(declared[name].secret for name in seen.attributes if name in declared):
                known.secret = True
        return Done(outcome, known, started)

    def _observe(self) -> Observation:
        known, was_open = self.known, self.resource.op in ("CREATE", "UPDATE")
        action = "UPDATE" if known.op == "UPDATE" else "CREATE"
        return self.kind.observe(self._context(action, None if was_open else 0.0), known.physical_id or "")

    def _continue(self, retries_left: int) -> Done:
        """Look how an open operation does; one that was begun for another definition is followed by ours."""
        known, inputs = self.known, sorted(self.visit.inputs)
        done = self._judge(self._observe(), 0 if known.op == "UPDATE" else retries_left, started=False)
        if not isinstance(done.outcome, Ready):
            return done
        if not self._is_current():
            return replace(done, outcome=Ended(done.outcome.observation))
        known.requires = tuple([data.id for data in inputs])
        known.input_digests = tuple([data.value_digest or "" for data in inputs])
        return done

    def _is_current(self) -> bool:
        """Whether what was begun is what is wanted now, with what its requirements hand on now."""
        resource, definition = self.resource, self.visit.definition
        if definition is None or resource.definition_id != definition.id:
            return False
        begun_with = dict(zip(resource.requires, resource.input_digests, strict=True))
        return all(begun_with.get(data.id) == (data.value_digest or "") for data in self.visit.inputs)

    def _revise(self) -> Done:
        """Bring what is there to what is wanted, by the smallest step."""
        known, resource, definition = self.known, self.resource, self.visit.definition
        assert definition is not None
        other = self._other_type()
        if other is not None:
            return Done(other, known)
        before = replace(known)
        external = self._resolve()
        if external is not None:
            return self._keep_external(external, before)
        if resource.status == "FAILED":
            return Done(Replaced(), before)
        after = orjson.loads(orjson.dumps(dict(known.properties)))
        old = dict(before.properties)
        changed = frozenset(name for name in old.keys() | after.keys() if old.get(name) != after.get(name))
        if wrong := immutable_changes(self.kind.properties, old, after):
            message = immutable_message(wrong, resource.name, resource.type)
            return Done(Failed(f"NotSupported: resources.{resource.name}: {message}"), before)
        change = self.kind.change(old, after, changed)
        if change == "replace":
            return Done(Replaced(), before)
        known.secret = known.secret or before.secret
        if change == "keep" and (before.metadata or None) == (known.metadata or None):
            known.properties = before.properties
            return Done(Kept(), known)
        return self._update(changed, before)

    def _resend(self) -> Done:
        """Ask again for a change whose fate is unknown; what it was before is not known either."""
        other = self._other_type()
        if other is not None:
            return Done(other, self.known)
        before, known, kind = replace(self.known), self.known, self.kind
        self._resolve()
        after = orjson.loads(orjson.dumps(dict(known.properties)))
        old = dict(before.properties)
        changed = frozenset(name for name in old.keys() | after.keys() if old.get(name) != after.get(name))
        if kind.change(old, after, changed) == "replace":
            return Done(Replaced(), before)
        movable = {name for name, prop in kind.properties.items() if prop.update_allowed}
        return self._update(frozenset(movable & after.keys()), before)

    def _other_type(self) -> Replaced | None:
        """Return that another is to be made when the definition is of another type by now."""
        definition = self.visit.definition
        assert definition is not None
        runs_as = definition.body.get("runs_as")
        if (runs_as or definition.body["type"]) == self.resource.kind:
            return None
        return Replaced()

    def _update(self, changed: frozenset[str], before: Known) -> Done:
        known, kind = self.known, self.kind
        known.action = "UPDATE"
        narrowed = known.requires, known.input_digests
        if kind.calls_out:
            # Until it is done it may still stand on what it was built with.
            known.requires, known.input_digests = widened(before, known)
            known.op = "UPDATE"
            self._begin()
            known.requires, known.input_digests = narrowed
        known.op = "UPDATE"
        if changed:
            ctx = self._context("UPDATE", 0.0)
            made = kind.update(ctx, known.physical_id or "", known.properties, changed)
            known.physical_id, known.secret = made.physical_id, known.secret or made.secret
            if made.data:
                known.data = made.data
        return self._judge(self._observe(), 0, started=not kind.calls_out)

    def _keep_external(self, external: str, before: Known) -> Done:
        if external != before.physical_id:
            name, kind = self.resource.name, self.resource.type
            message = f"Update to property external_id of {name} ({kind}) is not supported."
            return Done(Failed(f"NotSupported: resources.{name}: {message}"), before)
        return Done(
            Kept(),
            replace(
                before,
                requires=self.known.requires,
                input_digests=self.known.input_digests,
                definition_id=self.known.definition_id,
            ),
        )

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
        known.definition_id = definition.id
        metadata = body.get("metadata")
        known.metadata = view.resolve(metadata, f"resources.{name}.metadata") if metadata else metadata
        known.secret = view.touched_secret
        known.requires = tuple([data.id for data in inputs])
        known.input_digests = tuple([data.value_digest or "" for data in inputs])
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


def value_digest(known: Known) -> str:
    """Return a digest of what a resource hands on to those that require it (PROTOCOL.md 7)."""
    text = orjson.dumps(
        [known.reference_id, known.physical_id, known.attributes], option=orjson.OPT_SORT_KEYS
    )
    return hashlib.blake2b(text, digest_size=12).hexdigest()


def widened(before: Known, after: Known) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return what a resource stands on while it goes from one definition to another: both (PROTOCOL.md 9)."""
    both = dict(zip(before.requires, before.input_digests, strict=True))
    both |= dict(zip(after.requires, after.input_digests, strict=True))
    return tuple(both), tuple(both.values())
