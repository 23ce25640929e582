"""Answers have the fields of Heat's answers, and the additional fields that docs/compatibility.md lists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from tests.scenarios.keystone.access_world import served
from tests.scenarios.world import World, test_resource

DOCUMENT: Final = Path(__file__).parents[3] / "docs" / "compatibility.md"
WORD: Final = re.compile(r"`([a-z_]+)`")

# By request, the fields of Heat 27.0.1.
HEAT: Final = {
    "stacks/NAME/ID": "capabilities creation_time deletion_time description disable_rollback id links "
    "notification_topics outputs parameters parent stack_name stack_owner stack_status stack_status_reason "
    "stack_user_project_id tags template_description timeout_mins updated_time",
    "resources/NAME": "attributes creation_time description links logical_resource_id physical_resource_id "
    "required_by resource_name resource_status resource_status_reason resource_type updated_time",
    "events/ID": "event_time id links logical_resource_id physical_resource_id resource_name "
    "resource_properties resource_status resource_status_reason resource_type",
    "snapshots": "creation_time id name status status_reason data",
}


def documented(column: int) -> dict[str, set[str]]:
    """Return the fields in a column of the table, by the first request of each row."""
    section = DOCUMENT.read_text().partition("## Additional fields of answers")[2]
    lines = section.partition("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| `GET")]
    return {row[0].split("`")[1].removeprefix("GET …/"): set(WORD.findall(row[column])) for row in rows}


def answers(world: World) -> dict[str, dict[str, Any]]:
    """Return an answer of each request."""
    uuid = world.create("s", {"a": test_resource()})
    world.deliver_all()
    api = served(world)
    stack = f"/v1/p1/stacks/s/{uuid}"
    assert api.post(f"{stack}/snapshots", json={"name": "x"}).status_code == 200
    world.deliver_all()
    event = api.get(f"{stack}/resources/a/events").json["events"][0]["id"]
    return {
        "stacks/NAME/ID": api.get(stack).json["stack"],
        "resources/NAME": api.get(f"{stack}/resources/a").json["resource"],
        "events/ID": api.get(f"{stack}/resources/a/events/{event}").json["event"],
        "snapshots": api.get(f"{stack}/snapshots").json["snapshots"][0],
    }


def test_the_document_lists_every_additional_field(world: World) -> None:
    found = answers(world)
    additional = {place: body.keys() - set(HEAT[place].split()) for place, body in found.items()}
    missing = {place: set(HEAT[place].split()) - body.keys() for place, body in found.items()}
    assert additional == documented(1)
    assert missing == {place: set() for place in HEAT}
    assert documented(2).keys() == HEAT.keys()
