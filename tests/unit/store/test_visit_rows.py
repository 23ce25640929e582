"""The visits in the rows of the statements that read nodes."""

from __future__ import annotations

from typing import Any

from orchestrator.engine.check.visit import ControlVisit, DefinitionView, NodeData, ResourceVisit
from orchestrator.store.nodes import repository
from tests.unit.engine.check.visit_samples import RESOURCE, STACK

NODE = (1, "update", 7, "local", "a", 0, 0)
DEFINITION = DefinitionView(3, {"type": "A::Type"}, "digest", ("b",), {})
INPUT = NodeData(6, "b", "b-1", None, "CREATE", "COMPLETE", {}, None)
STORED = RESOURCE[:24]  # the mark and everything after it come at the end of the row
NO_RESOURCE = (None,) * len(STORED)
NO_DEFINITION = (None,) * len(DEFINITION)


def test_a_row_with_a_resource_is_a_resource_visit():
    row: tuple[Any, ...] = (
        *NODE,
        *STACK[:-1],  # the last value comes at the end of the row
        *STORED,
        *DEFINITION,
        [list(INPUT)],
        ["pre-update"],
        2,
        1.5,
        True,
        {"cause": "MISSING"},
        0.5,
        "confirm",
        7.0,
        True,
        False,
        True,
        True,
        True,
        {"quota": 1.0, "now": 3.0},
        "quota",
        8,
    )
    assert row[repository.RESOURCE_ID] == RESOURCE.id
    marked = RESOURCE._replace(marked_unhealthy=True, repair={"cause": "MISSING"}, reachable_seconds=0.5)
    marked = marked._replace(step="confirm", requested_seconds=7.0, released=True)
    assert repository.resource_visit(row) == ResourceVisit(
        *NODE,
        STACK._replace(automatic=True),
        marked,
        DEFINITION,
        (INPUT,),
        ["pre-update"],
        2,
        1.5,
        True,
        False,
        True,
        {"quota": 1.0, "now": 3.0},
        "quota",
        8,
    )


def test_a_resource_may_have_no_definition_no_inputs_and_no_hooks():
    row: tuple[Any, ...] = (
        *NODE,
        *STACK[:-1],  # the last value comes at the end of the row
        *STORED,
        *NO_DEFINITION,
        None,
        None,
        0,
        None,
        False,
        None,
        None,
        None,
        None,
        None,
        None,
        False,
        None,
        False,
        None,
        None,
        None,
    )
    assert repository.resource_visit(row) == ResourceVisit(*NODE, STACK, RESOURCE, None, (), ())


def test_a_row_without_a_resource_is_a_control_visit():
    row: tuple[Any, ...] = (*NODE, *STACK[:-1], *NO_RESOURCE, *NO_DEFINITION, None, None)
    assert row[repository.RESOURCE_ID] is None
    assert repository.control_visit(row) == ControlVisit(*NODE, STACK)
