"""Statements as they are sent on the connections of checks."""

from __future__ import annotations

import pytest

from orchestrator.store import ending_statements, node_statements, planning
from orchestrator.store.database import numbered


@pytest.mark.parametrize(
    ("statement", "text", "names"),
    [
        ("SELECT 1", b"SELECT 1", ()),
        ("SELECT %s, %s", b"SELECT $1, $2", ()),
        ("SELECT %(a)s, %(b)s::text, %(a)s", b"SELECT $1, $2::text, $1", ("a", "b")),
        ("SELECT 5 %% 2, %(a)s", b"SELECT 5 % 2, $1", ("a",)),
    ],
)
def test_placeholders_are_numbered_in_the_order_in_which_they_first_come(
    statement: str, text: bytes, names: tuple[str, ...]
) -> None:
    assert numbered(statement) == (text, names)


def test_no_placeholder_is_left_in_the_statements_of_a_visit() -> None:
    statements = [*ending_statements.OF_ONE.values(), *ending_statements.UNCLAIMED.values()]
    statements += [node_statements.LOOK, node_statements.GLANCE_AT_ONE, planning.STILL_OURS]
    assert [text for text in statements if b"%" in numbered(text)[0]] == []


def test_a_statement_is_gone_through_once_however_long_it_is() -> None:
    statement = "SELECT %(a)s /* " + "x" * 10_000 + " */"
    assert numbered(statement)[0] is numbered(statement)[0]
