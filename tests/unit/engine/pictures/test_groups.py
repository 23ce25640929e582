"""Maps: groups of resources, and their limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from orchestrator.engine.pictures.field import DRIFT, STATES
from orchestrator.engine.pictures.groups import (
    MAX_GROUPS,
    Expansion,
    StackMap,
    Tree,
    fine_groups,
    parse_expansion,
    summarize,
)
from tests.unit.engine.pictures.small_graphs import graph

COMPLETE, FAILED = STATES.index("complete"), STATES.index("failed")
CHILD = "7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01"

ROOT, CLOSED = Tree(1), Expansion()
Row = tuple[int, str, int, int]  # stack, type, level, state


def picture(
    rows: Sequence[Row],
    edges: Sequence[tuple[int, int]] = (),
    tree: Tree = ROOT,
    expansion: Expansion = CLOSED,
) -> StackMap:
    stacks, types, levels, states = zip(*rows, strict=True)
    places = range(len(rows))
    fine = fine_groups(stacks, types, levels, places, [graph(len(rows), edges)])
    return summarize(fine, Counter(zip(fine.of, states, strict=True)), tree, expansion)


def test_resources_of_a_type_and_level_are_a_group() -> None:
    rows = [(1, "A", 0, COMPLETE), (1, "A", 0, FAILED), (1, "B", 1, COMPLETE | DRIFT), (1, "B", 1, COMPLETE)]
    found = picture(rows, [(2, 0), (3, 0), (3, 1)])
    assert [(group.label, dict(group.counts)) for group in found.groups] == [
        ("A", {"complete": 1, "failed": 1}),
        ("B", {"complete": 2, "drift": 1}),
    ]
    assert found.edges == ((1, 0, 3),)
    assert [group.size for group in found.groups] == [2, 2]


def test_a_state_without_resources_is_left_out() -> None:
    fine = fine_groups([1], ["A"], [0], [0], [graph(1, [])])
    found = summarize(fine, {(0, FAILED): 1}, ROOT, CLOSED)
    assert [dict(group.counts) for group in found.groups] == [{"failed": 1}]


def test_a_nested_stack_is_a_group_until_it_is_expanded() -> None:
    tree = Tree(1, {2: 1, 3: 2}, {2: "child", 3: "grandchild"}, {2: CHILD, 3: CHILD.replace("7", "8")})
    rows = [(1, "A", 0, COMPLETE), (2, "B", 1, COMPLETE), (3, "C", 2, COMPLETE)]
    closed = picture(rows, tree=tree)
    assert [(group.label, group.size) for group in closed.groups] == [("A", 1), ("child", 2)]
    assert closed.groups[1].expand == f"stack:{CHILD}"
    expansion = parse_expansion([f"stack:{CHILD}"], tree)
    assert expansion is not None
    opened = picture(rows, tree=tree, expansion=expansion)
    assert [group.label for group in opened.groups] == ["A", "B", "grandchild"]


def test_many_nested_stacks_are_combined_by_level() -> None:
    stacks = range(2, 1_002)
    tree = Tree(1, dict.fromkeys(stacks, 1), {id_: f"n{id_}" for id_ in stacks})
    found = picture([(id_, "B", 1, COMPLETE) for id_ in stacks], tree=tree)
    assert [(group.label, group.size) for group in found.groups] == [("1000 nested stacks", 1_000)]


def test_many_levels_are_combined_to_ranges_that_can_be_opened() -> None:
    rows = [(1, "A", level, COMPLETE) for level in range(1_000)]
    found = picture(rows, [(level + 1, level) for level in range(999)])
    assert len(found.groups) == 100
    assert found.groups[0].expand == "levels:0-9"
    expansion = parse_expansion(["levels:0-9"], Tree(1))
    assert expansion is not None
    opened = picture(rows, expansion=expansion)
    assert [group.key.first for group in opened.groups][:11] == list(range(11))


def test_a_map_has_a_maximum_and_counts_what_it_omits() -> None:
    rows = [(1, f"type {n % 50}", n % 400, FAILED if n == 7 else COMPLETE) for n in range(20_000)]
    found = picture(rows)
    assert len(found.groups) <= MAX_GROUPS
    assert sum(group.size for group in found.groups) + found.omitted_resources == 20_000
    assert any(group.counts.get("failed") for group in found.groups)


@pytest.mark.parametrize("value", ["stack:1", "levels:a-b", "", "levels:1-2;drop"])
def test_an_invalid_expansion_is_refused(value: str) -> None:
    assert parse_expansion([value], Tree(1)) is None
    assert parse_expansion(["levels:0-1"] * 21, Tree(1)) is None
