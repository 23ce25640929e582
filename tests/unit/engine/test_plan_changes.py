"""The nodes that a traversal visits, given desired and recorded state (docs/internals/protocol.md rules 7,
8).
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engine.plan_changes import DesiredRow, Row, plan_changes

KIND = "T"


def row(id_, name, requires=(), *, digest=b"1", observed=None, **options):
    facts = {
        "resource_type": KIND,
        "action": "CREATE",
        "status": "COMPLETE",
        "op": None,
        "attempt": 1,
        "built_digest": digest,
        "requires": list(requires),
        "input_digests": list(observed or ["v"] * len(requires)),
        "value_digest": "v",
        "deposed": False,
    }
    return Row(id_, name, **{**facts, **options})


def want(requires=(), digest=b"1", kind=KIND):
    return DesiredRow(digest, kind, frozenset(requires))


def test_a_resource_in_its_desired_state_is_not_visited():
    rows = [row(1, "a"), row(2, "b", [1])]
    changes = plan_changes(rows, {"a": want(), "b": want(["a"])})
    assert (changes.visited, changes.dirty, changes.cleanups) == ([], set(), [])


def test_a_changed_resource_is_visited_with_all_its_dependents():
    rows = [row(1, "a"), row(2, "b", [1]), row(3, "c", [2]), row(4, "d")]
    changes = plan_changes(rows, {"a": want(digest=b"2"), "b": want(["a"]), "c": want(["b"]), "d": want()})
    assert (changes.dirty, changes.visited) == ({"a"}, ["a", "b", "c"])


def test_a_resource_built_with_another_value_is_visited_despite_an_equal_definition():
    """The ripple of a superseded traversal ended before it."""
    rows = [row(1, "a", value_digest="new"), row(2, "b", [1])]
    assert plan_changes(rows, {"a": want(), "b": want(["a"])}).dirty == {"b"}


def test_a_dependent_of_a_replaced_resource_is_visited():
    rows = [row(1, "a", deposed=True), row(2, "a"), row(3, "b", [1])]
    assert plan_changes(rows, {"a": want(), "b": want(["a"])}).dirty == {"b"}


def test_every_unsettled_node_is_visited():
    for unsettled in (
        {"status": "FAILED"},
        {"op": "UPDATE", "status": "IN_PROGRESS"},
        {"action": "INIT", "attempt": 0},
        {"resource_type": "Other"},
    ):
        assert plan_changes([row(1, "a", **unsettled)], {"a": want()}).dirty == {"a"}


def test_a_rollback_prefers_the_resource_with_the_matching_definition():
    rows = [row(1, "a", deposed=True), row(2, "a", digest=b"2")]
    changes = plan_changes(rows, {"a": want()})
    assert changes.current["a"].id == 1
    assert (changes.restored, changes.deposed_by) == ([1], {2: 1})


def test_a_resource_being_deleted_is_never_used_again():
    rows = [row(1, "a", deposed=True, action="DELETE", op="DELETE", status="IN_PROGRESS")]
    changes = plan_changes(rows, {"a": want()})
    assert "a" not in changes.current
    assert changes.dirty == {"a"}
    assert [cleanup.id for cleanup in changes.cleanups] == [1]


def test_a_failed_resource_is_used_again_if_it_is_the_only_candidate():
    assert plan_changes([row(1, "a", status="FAILED")], {"a": want()}).current["a"].id == 1
    both = [row(1, "a", deposed=True), row(2, "a", status="FAILED")]
    assert plan_changes(both, {"a": want()}).current["a"].id == 1


def test_unreferenced_resources_are_deleted_at_once_and_the_rest_later():
    rows = [row(1, "a"), row(2, "b", [1]), row(3, "c"), row(4, "d", [3]), row(5, "e", [4])]
    changes = plan_changes(rows, {"b": want(digest=b"2"), "e": want(["d"]), "d": want()})
    assert changes.deposed_by == {1: None, 3: None}
    assert changes.cleanups == []  # b still stands on a, d on c
    changes = plan_changes(rows, {"a": want(), "b": want(["a"])})
    assert [cleanup.id for cleanup in changes.cleanups] == [3, 4, 5]


def test_rows_that_were_never_created_are_dropped():
    rows = [row(1, "a", action="INIT", attempt=0), row(2, "b")]
    changes = plan_changes(rows, {"b": want()})
    assert (changes.never_created, changes.cleanups) == ([1], [])


def test_nodes_begun_by_an_interrupted_plan_are_visited_again():
    rows = [row(1, "a"), row(2, "b", [1])]
    assert plan_changes(rows, {"a": want(), "b": want(["a"])}, started=["a"]).visited == ["a", "b"]


names = st.sampled_from("abcdef")
graphs = st.dictionaries(names, st.frozensets(names, max_size=3)).map(
    lambda drawn: {name: {r for r in needs if r in drawn and r < name} for name, needs in drawn.items()}
)


@given(graphs, graphs, st.sets(names))
def test_every_row_is_kept_dropped_or_leaves_and_everything_wanted_is_there_or_visited(old, new, changed):
    ids = {name: number for number, name in enumerate(sorted(old), 1)}
    rows = [row(ids[name], name, sorted(ids[r] for r in old[name])) for name in sorted(old)]
    expected = {name: want(needs, b"2" if name in changed else b"1") for name, needs in new.items()}
    changes = plan_changes(rows, expected)
    kept = {item.id for item in changes.current.values()}
    assert kept.isdisjoint(changes.deposed_by)
    assert kept | changes.deposed_by.keys() == {item.id for item in rows}
    for name, item in expected.items():
        if name not in changes.visited:
            assert name in changes.current
            assert not item.requires & set(changes.visited)
    going = {item.id for item in changes.cleanups}
    for item in rows:
        if item.id not in going:
            assert going.isdisjoint(item.requires)
