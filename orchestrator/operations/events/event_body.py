"""The body of an event, identical in lists, streams and webhook deliveries."""

from __future__ import annotations

import datetime as dt

from orchestrator.json_types import JsonObject
from orchestrator.store.events.events import EventRow, event_uuid
from orchestrator.store.stacks.stacks import StackRow


def event_body(row: EventRow, stack: StackRow) -> JsonObject:
    """Return the fields of an event, without links."""
    return {
        "id": event_uuid(stack.uuid, row.id),
        "event_time": row.created_at.astimezone(dt.UTC).isoformat()[:19] + "Z",
        "resource_name": row.resource_name,
        "logical_resource_id": row.resource_name,
        "physical_resource_id": row.physical_id,
        "resource_status": f"{row.action}_{row.status}",
        "resource_status_reason": row.reason,
        "sequence": row.sequence,
        **({"automatic": True} if row.automatic else {}),
    }


def event_stack_fields(row: EventRow, stack: StackRow) -> JsonObject:
    """Return the additional fields for recipients of events of several stacks."""
    return {"resource_type": row.resource_type, "stack_id": str(stack.uuid), "stack_name": stack.name}
