"""The verbs of a type, called while its provider cannot be reached (docs/plugins.md, "Facts and errors")."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from orchestrator.errors import UNREACHABLE_ERRORS
from orchestrator.testing.operated import Operated
from orchestrator.testing.samples import other_value

Call = tuple[str, Callable[[], object]]


def fault_of(verb: str, call: Callable[[], object]) -> str:
    """Call a verb during an outage; return the fault in its report, "" if it reports the outage."""
    try:
        result = call()
    except UNREACHABLE_ERRORS:
        return ""
    except Exception as error:
        return f"{verb} raised {type(error).__name__}, which does not report an outage: {error}"
    return f"{verb} returned {result!r} during an outage"


def provider_calls(existing: Operated, fresh: Operated) -> Iterator[Call]:
    """Yield the verbs that call a provider; `existing` was created before the outage, `fresh` was not."""
    kind, ctx, physical_id = existing.kind, existing.ctx, existing.physical_id
    yield "create", fresh.create
    if kind.can_find:
        yield "find", lambda: kind.find(ctx, ctx.token)
    for action in ("CREATE", "CHECK", "DELETE"):
        yield f"observe ({action})", lambda action=action: existing.observe(action)  # type: ignore[misc]
    name = existing.updatable()
    if name is not None:
        value = other_value(kind, existing.sample, name)
        yield "update", lambda: existing.update(**{name: value})
    if kind.can_pause:
        yield "suspend", lambda: kind.suspend(replace(ctx, action="SUSPEND"), physical_id)
        yield "resume", lambda: kind.resume(replace(ctx, action="RESUME"), physical_id)
    if kind.has_provider_check:
        yield "check", lambda: kind.check(replace(ctx, action="CHECK"), physical_id)
    if kind.can_copy:
        copied = replace(ctx, action="SNAPSHOT", token=f"{existing.uuid}-s1")
        yield "snapshot", lambda: kind.snapshot(copied, physical_id)
        yield "delete_snapshot", lambda: kind.delete_snapshot(copied, {})
    if kind.can_release:
        yield "release", lambda: kind.release(replace(ctx, action="RELEASE"), physical_id)
        reclaimed = replace(ctx, action="RECLAIM")
        yield "reclaim", lambda: kind.reclaim(reclaimed, physical_id, ctx.properties)
    if kind.can_recover:
        yield "recover", lambda: kind.recover(replace(ctx, action="UPDATE"), physical_id)
    if kind.judges_health:
        yield "is_healthy_after_failure", lambda: kind.is_healthy_after_failure(ctx, physical_id)
    yield "delete", existing.delete
