"""Visits: their two classes, and the behaviour that both share."""

from __future__ import annotations

import pytest

from orchestrator.engine.check.visit import ControlVisit, ResourceVisit, Visit, replacement_visit
from tests.unit.engine.check.visit_samples import NEW, RESOURCE, STACK, visit

CONTROL = ControlVisit(2, "join", 7, "bulk", "join", 0, 0, STACK)


def in_stack(visited: Visit, **stack: object) -> Visit:
    """Return the visit with other fields of the stack."""
    return visited._replace(stack=STACK._replace(**stack))


@pytest.mark.parametrize("visited", [visit(), CONTROL])
def test_a_visit_knows_the_state_of_its_traversal(visited: Visit):
    assert (visited.superseded, visited.halted) == (False, False)
    assert in_stack(visited, traversal=8).superseded
    assert in_stack(visited, halted_traversal=7).halted
    assert not in_stack(visited, halted_traversal=6).halted


@pytest.mark.parametrize("visited", [visit(), CONTROL])
@pytest.mark.parametrize(("action", "act"), [("SUSPEND", "SUSPEND"), ("CHECK", "CHECK"), ("UPDATE", None)])
def test_a_visit_knows_the_action_without_a_template(visited: Visit, action: str, act: str | None):
    assert in_stack(visited, action=action).act == act


@pytest.mark.parametrize(("visited", "node", "resource"), [(visit(), 1, "a"), (CONTROL, 2, None)])
def test_a_visit_names_its_node_and_resource_in_the_log(visited: Visit, node: int, resource: str | None):
    assert in_stack(visited, request_id="req-1").log_context() == {
        "stack": "stack-uuid",
        "project": "p",
        "resource": resource,
        "node": node,
        "traversal": 7,
        "request_id": "req-1",
    }


@pytest.mark.parametrize("visited", [visit(), CONTROL])
def test_a_visit_is_a_plain_tuple_and_keeps_its_class(visited: Visit):
    assert not hasattr(visited, "__dict__")
    assert type(visited._replace(lost_leases=1)) is type(visited)


def test_a_control_visit_has_the_fields_of_a_node_and_its_stack():
    assert ResourceVisit._fields[: len(ControlVisit._fields)] == ControlVisit._fields


def test_a_replacement_is_visited_before_its_row_exists():
    body = {"type": "B::Type", "runs_as": "B::Alias"}
    replaced = visit(body=body)._replace(retry_count=3)
    replacement = replacement_visit(replaced, "new-uuid")
    assert replacement == replaced._replace(
        retry_count=0,
        resource=NEW._replace(
            uuid="new-uuid",
            type="B::Type",
            runs_as="B::Alias",
            properties=None,
            attributes=None,
            data=None,
        ),
    )
    assert replaced.resource == RESOURCE
