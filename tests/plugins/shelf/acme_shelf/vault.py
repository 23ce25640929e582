"""Acme::Vault: every optional verb and every declaration of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from acme_shelf import shelf
from acme_shelf.box import Box, shelf_errors
from orchestrator.resources.base import (
    Attribute,
    Change,
    Context,
    Created,
    Fault,
    Observation,
    Property,
    Signalled,
    Value,
)
from orchestrator.schema.constraints import Length, Range


class Vault(Box):
    """A vault on Acme's shelf."""

    name = "Acme::Vault"
    properties: ClassVar = {
        "label": Property("string", "Text on the door.", default="", update_allowed=True),
        "slots": Property(
            "integer", "Number of slots.", default=3, update_allowed=True, constraints=(Range(1, 50),)
        ),
        "serial": Property("string", "Number of the vault.", default="0", immutable=True),
        "hinges": Property(
            "list",
            "Hinges of the door.",
            update_allowed=True,
            constraints=(Length(max=4),),
            schema=Property(
                "map",
                "A hinge.",
                schema={"steel": Property("string", "Kind of steel.", default="A2", update_allowed=True)},
            ),
        ),
        "dry_seconds": Property("number", "Drying time of the paint.", default=0),
        "source": Property("string", "Copy that the vault is made from.", default=""),
    }
    attributes: ClassVar = {
        "label": Attribute("Text on the door.", type="string"),
        "key": Attribute("Key of the lock.", type="string", secret=True),
        "rings": Attribute("Details of the signals."),
    }
    publishes = True
    preemptible = frozenset({"CREATE"})
    support_status = "SUPPORTED"
    support_message = "No replacement is planned."
    support_version = "2026"
    hidden = False

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Reject a paint that dries longer than the stack may take."""
        if properties.get("dry_seconds", 0) >= stack_timeout_seconds:
            return (Fault("The paint dries too slowly.", "dry_seconds"),)
        return ()

    def inquire(self, ctx: Context, props: Mapping[str, Value]) -> Sequence[Fault]:
        """Reject a vault from a copy that does not exist."""
        source = props.get("source")
        with shelf_errors():
            if source and shelf.get(source) is None:
                return (Fault(f"There is no copy {source}.", "source"),)
        return ()

    def change(
        self, before: Mapping[str, Value], after: Mapping[str, Value], changed: frozenset[str]
    ) -> Change:
        """Replace a vault that loses slots; keep a vault whose label differs only in spaces."""
        if changed == {"label"} and before["label"].strip() == after["label"].strip():
            return "keep"
        if "slots" in changed and after["slots"] < before["slots"]:
            return "replace"
        return super().change(before, after, changed)

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Request a vault; its key is stored encrypted."""
        with shelf_errors():
            id = shelf.create(ctx.token, **props)
            box = shelf.get(id)
        return Created(id, data={"key": box["key"] if box else "", "rings": []}, secret=True)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the vault: painted, broken, closing or ready."""
        with shelf_errors():
            box = shelf.get(physical_id)
        if box is None:
            return Observation(exists=False)
        if box["broken"]:
            return Observation(exists=True, error="the door jams", error_kind="DoorError", replaceable=True)
        remaining = ctx.properties.get("dry_seconds", 0) - ctx.elapsed_seconds
        if ctx.action == "CREATE" and remaining > 0:
            return Observation(exists=True, ready=False, retry_after=remaining, reason="the paint dries")
        if ctx.action in ("SUSPEND", "RESUME") and box["closed"] != (ctx.action == "SUSPEND"):
            return Observation(exists=True, ready=False, retry_after=1.0)
        return Observation(
            exists=True,
            attributes={"label": box["label"], "key": box["key"], "rings": list(ctx.data.get("rings", []))},
            reference_id=f"vault-{physical_id}",
            properties={"label": box["label"], "slots": box["slots"]},
        )

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Write the changed properties."""
        with shelf_errors():
            shelf.update(physical_id, **{name: props.get(name) for name in changed})
        return Created(physical_id, secret=True)

    def must_replace(self, ctx: Context, physical_id: str, props: Mapping[str, Value]) -> bool:
        """A closed vault cannot be changed."""
        with shelf_errors():
            box = shelf.get(physical_id)
        return box is not None and box["closed"]

    def check(self, ctx: Context, physical_id: str) -> None:
        """Let the vault check its door."""
        with shelf_errors():
            box = shelf.get(physical_id)
            if box is not None:
                shelf.update(physical_id, checks=box["checks"] + 1)

    def snapshot(self, ctx: Context, physical_id: str) -> Mapping[str, Value]:
        """Copy the vault under the request token."""
        with shelf_errors():
            return {"copy": shelf.copy(physical_id, ctx.token)}

    def delete_snapshot(self, ctx: Context, snapshot_data: Mapping[str, Value]) -> None:
        """Delete the copy; without data, the token identifies it."""
        with shelf_errors():
            shelf.delete(snapshot_data.get("copy", f"copy-{ctx.token}"))

    def restored(self, properties: Mapping[str, Value], snapshot: Mapping[str, Value]) -> Mapping[str, Value]:
        """Make the vault from its copy."""
        return {**properties, "source": snapshot["copy"]}

    def signal(self, ctx: Context, physical_id: str, details: Value) -> Signalled:
        """Record the ring."""
        rings = [*ctx.data.get("rings", []), details]
        return Signalled(
            f"ring {len(rings)}", data={**ctx.data, "rings": rings}, metadata={"rings": len(rings)}
        )

    def cancel(self, ctx: Context, physical_id: str) -> str:
        """Stop waiting for the paint."""
        return "the paint is left wet"

    def published(self, ctx: Context, physical_id: str) -> Mapping[str, Value]:
        """Show the key to the server that opens the vault."""
        return {"key": ctx.data.get("key", "")}

    def is_healthy_after_failure(self, ctx: Context, physical_id: str) -> bool:
        """Return whether the door works again."""
        with shelf_errors():
            box = shelf.get(physical_id)
        return box is not None and not box["broken"]
