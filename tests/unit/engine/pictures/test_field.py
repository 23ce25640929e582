"""Fields: levels, changes and the format of responses."""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engine.pictures.field import DRIFT, Field, encode, encode_changes, with_drift
from orchestrator.engine.pictures.levels import counts_of, levels, order_by_level
from tests.unit.engine.pictures.small_graphs import graph


def levels_of(size: int, edges: Iterable[tuple[int, int]], *, reverse: bool = False) -> list[int]:
    made = graph(size, edges, reverse=reverse)
    return list(levels(made.names, made.nodes, made.requires))


def field(*states: int) -> Field:
    return Field(array("q", range(100, 100 + len(states))), bytearray(states), [len(states)])


def test_the_level_is_the_longest_chain_of_requirements() -> None:
    found = levels_of(5, [(1, 0), (2, 1), (2, 0), (4, 3)])
    assert found == [0, 1, 2, 0, 1]
    order, counts = order_by_level(found)
    assert (list(order), counts) == ([0, 3, 1, 4, 2], [2, 2, 1])


def test_nodes_on_a_cycle_do_not_stop_the_order() -> None:
    assert levels_of(4, [(0, 1), (1, 0), (2, 1), (3, 3)]) == [0, 0, 0, 0]


def test_unknown_requirements_are_ignored() -> None:
    assert levels_of(3, [(0, 7), (1, 0), (2, 7), (2, 1)]) == [0, 1, 2]
    assert list(levels(["c", "b"], ["b", "a"], ["a", ""])) == [0, 1]


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=80),
    st.permutations(range(31)),
    st.booleans(),
)
def test_the_level_of_a_node_is_one_above_its_highest_requirement(
    pairs: list[tuple[int, int]], rank: list[int], reverse: bool
) -> None:
    acyclic = sorted(
        {tuple(sorted(pair, key=rank.__getitem__, reverse=True)) for pair in pairs if pair[0] != pair[1]}
    )
    found = levels_of(31, acyclic, reverse=reverse)
    for node in range(31):
        below = [found[required] for dependent, required in acyclic if dependent == node]
        assert found[node] == 1 + max(below, default=-1)
    order, counts = order_by_level(found)
    assert sorted(order) == list(range(31))
    assert counts == counts_of(found)
    assert sum(counts) == 31


def test_a_chain_of_many_is_ordered_without_recursion() -> None:
    size = 20_000
    for reverse in (False, True):
        assert (
            levels_of(size, [(node + 1, node) for node in range(size - 1)], reverse=reverse)[-1] == size - 1
        )


def test_positions_are_found_by_dense_and_sparse_ids() -> None:
    for ids in ([7, 5, 9], [5, 9_000_000, 7]):
        found = Field(array("q", ids), bytearray(3), [3])
        assert [found.position(id_) for id_ in ids] == [0, 1, 2]
        assert found.position(6) is None
        assert found.position(-1) is None


def test_counts_follow_the_changes() -> None:
    found = field(0, 0, 2)
    assert found.change(0, 3)
    assert not found.change(0, 3)
    assert found.change(1, 2 | DRIFT)
    counts = found.summary()["counts"]
    assert (counts["planned"], counts["complete"], counts["failed"], counts["drift"]) == (0, 2, 1, 1)
    assert found.replace_states(bytes([3, 2, 2])) == [1]
    assert found.summary()["counts"]["drift"] == 0


def test_counts_of_groups_follow_the_changes() -> None:
    found, groups = field(0, 0, 2, 2), array("i", [0, 1, 1, 1])
    assert found.group_counts(groups) == {(0, 0): 1, (1, 0): 1, (1, 2): 2}
    found.change(1, 2)
    found.replace_states(bytes([3, 2, 2, 2]))
    assert found.group_counts(groups) == {(0, 3): 1, (1, 2): 3}
    assert found.group_counts(array("i", [0, 0, 0, 0])) == {(0, 3): 1, (0, 2): 3}


def test_the_tag_depends_on_order_and_states() -> None:
    assert field(0, 1).tag == field(0, 1).tag
    assert field(0, 1).tag != field(0, 2).tag
    assert field(0, 1).order == field(0, 2).order
    assert field(0, 1).order != field(0, 1, 2).order
    ids = array("q", [1, 2])
    assert Field(ids, bytearray(2), [2]).order != Field(ids, bytearray(2), [1, 1]).order


def test_drift_is_a_flag_beside_the_state() -> None:
    states = bytearray([2, 2])
    with_drift([5, 6], states, frozenset({6}))
    assert states == bytearray([2, 2 | DRIFT])


def test_a_response_has_a_header_and_a_byte_per_resource() -> None:
    body = encode({"count": 2}, bytes([1, 2]))
    length = struct.unpack("<I", body[4:8])[0]
    assert body[:4] == b"FLD1"
    assert json.loads(body[8 : 8 + length]) == {"count": 2}
    assert body[8 + length :] == bytes([1, 2])


def test_changes_have_positions_and_bytes() -> None:
    body = encode_changes({"count": 3}, [0, 2], bytes([1, 2, 3]))
    length = struct.unpack("<I", body[4:8])[0]
    assert length % 4 == 0
    assert json.loads(body[8 : 8 + length]) == {"count": 3, "changed": 2}
    assert body[8 + length :] == struct.pack("<II", 0, 2) + bytes([1, 3])
