"""Verbs that a type may omit: the defaults do nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from orchestrator.resources.stack_context import Grant
from orchestrator.resources.verbs.values import Context, Created, Observation, Signalled, Unique, Value


class OptionalVerbs:
    """The verbs that a type may omit."""

    name: ClassVar[str]
    unique: ClassVar[Unique | None]
    deletes_first: ClassVar[bool]

    def delete(self, ctx: Context, physical_id: str) -> Observation | None:
        """Request deletion (`base.ResourceType`)."""
        raise NotImplementedError(self.name)

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Carry out the step that `observe` named in `Observation.step`, and return at once.

        The step is stored before the call, and `observe` is called after it. A step may run twice: it must be
        idempotent, or read the object first. A result replaces the physical id and the stored data.
        """
        raise NotImplementedError(self.name)

    def list_objects(self, ctx: Context) -> Iterable[tuple[str, Value]]:
        """Yield all objects of the project by physical id, for the continuous observation; for types with
        `lists`. An incomplete list must raise an error.

        `observe` then finds a listed object in `ctx.listed`. An object that is not listed is observed by
        itself.
        """
        raise NotImplementedError(self.name)

    def grants(self, ctx: Context, physical_id: str) -> Grant | None:
        """Return the access that the resource grants if `Created` did not name it; always the same."""
        return None

    def suspend(self, ctx: Context, physical_id: str) -> None:
        """Request suspension; `observe` reports its end. The default has nothing to suspend."""

    def resume(self, ctx: Context, physical_id: str) -> None:
        """Request the end of a suspension; `observe` reports when it is over."""

    def check(self, ctx: Context, physical_id: str) -> None:
        """Request that the object checks itself; `observe` reports the result. The default only observes."""

    def snapshot(self, ctx: Context, physical_id: str) -> Mapping[str, Value]:
        """Request a snapshot and return the data needed to find it again; `observe` reports its end.

        `ctx.token` is the same for every attempt, so that only one snapshot is created.
        """
        return {}

    def delete_snapshot(self, ctx: Context, snapshot_data: Mapping[str, Value]) -> None:
        """Request the deletion of a snapshot; a snapshot that is already gone is no error.

        `snapshot_data` is the result of `snapshot`, or empty if that result was lost: `ctx.token` then
        identifies the snapshot, if it exists.
        """

    def restored(self, properties: Mapping[str, Value], snapshot: Mapping[str, Value]) -> Mapping[str, Value]:
        """Return properties as written in a template, changed to create the object from a snapshot.

        `snapshot` is the result of the verb `snapshot`. The properties become part of the stack's template,
        which is public: they must not contain secrets.
        """
        return properties

    def restores_in_place(
        self, before: Mapping[str, Value], after: Mapping[str, Value], changed: frozenset[str]
    ) -> bool:
        """Return whether the restore of a snapshot can make this change in place; otherwise the object is
        replaced. For changes that are possible in one direction only, such as the growth of a disk.
        """
        return True

    def signal(self, ctx: Context, physical_id: str, details: Value) -> Signalled:
        """Process a signal. No other operation runs on the resource; may run twice.

        An exception ends the signal, with an event; after ProviderBusy the signal is tried again.
        """
        raise NotImplementedError(self.name)

    def must_replace(self, ctx: Context, physical_id: str, props: Mapping[str, Value]) -> bool:
        """Return whether an update in place to `props` is impossible after all. May read, changes nothing."""
        return False

    def cancel(self, ctx: Context, physical_id: str) -> str:
        """Abort an open operation listed in `preemptible`; return the reason for the event.

        Called when the stack has failed, or has a newer desired state for the resource. The operation has
        failed as soon as `cancel` returns.
        """
        raise NotImplementedError(self.name)

    def recover(self, ctx: Context, physical_id: str) -> None:
        """Request a repair of an object in error that keeps the object; `observe` reports the end.

        Called before the object is replaced, once for each fault. May run twice.
        """
        raise NotImplementedError(self.name)

    def published(self, ctx: Context, physical_id: str) -> Mapping[str, Value]:
        """Return the data shown with the resource's metadata; only for types that set `publishes`."""
        return {}

    def is_healthy_after_failure(self, ctx: Context, physical_id: str) -> bool:
        """Return whether a failed resource has recovered; it is observed instead without this verb."""
        return False

    def release(self, ctx: Context, physical_id: str) -> None:
        """Give up what a replacement needs: ports, addresses, unique names.

        Called on a replaced object before its replacement is created. `Observation.released` reports the end.
        May run twice. The default follows the rule of `unique`; a deleted object must be absent at the end.
        """
        if self.deletes_first:
            self.delete(ctx, physical_id)
        elif self.unique is not None and self.unique.rule == "rename":
            self.rename(ctx, physical_id, f"replaced-{physical_id}")

    def reclaim(self, ctx: Context, physical_id: str, props: Mapping[str, Value]) -> None:
        """Take back what `release` gave up, because a rollback keeps the object. May run twice."""
        if self.unique is not None and self.unique.rule == "rename":
            self.rename(ctx, physical_id, props[self.unique.keys[0][0]])

    def rename(self, ctx: Context, physical_id: str, name: str) -> None:
        """Request another name; an absent object is no error. For types whose rule is `rename`."""
        raise NotImplementedError(self.name)

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return the current values of live attributes, and of `show` if `live_show` is set. Only reads."""
        return {}
