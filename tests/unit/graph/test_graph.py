"""The graph and its layout: no node starts early, no node is forgotten, no level is wide."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import InvalidTemplate
from orchestrator.graph.build import build, build_anyhow
from orchestrator.graph.layout import FINISH, Layout, lay_out
from tests.profiles import examples


def graph_of(edges: dict[str, set[str]]):
    return build(list(edges), list(edges.values()))


@st.composite
def graphs(draw):
    size = draw(st.integers(0, 40))
    names = [f"n{i}" for i in range(size)]
    edges = {}
    for i, name in enumerate(names):
        edges[name] = set(draw(st.lists(st.sampled_from(names[:i]), max_size=i))) if i else set()
    order = draw(st.permutations(names))
    return {name: edges[name] for name in order}


def run(layout: Layout, blockers: list[int], rng: random.Random) -> list[int]:
    """Settle nodes in a random order as they become free; return the order."""
    blocked = list(layout.blocked_by)
    finish, ready, done = blockers[0], [n for n, count in enumerate(blocked) if not count], []
    while ready:
        node = ready.pop(rng.randrange(len(ready)))
        done.append(node)
        for target in layout.needed_by[node]:
            if target == FINISH:
                finish -= 1
                continue
            blocked[target] -= 1
            assert blocked[target] >= 0
            if not blocked[target]:
                ready.append(target)
    blockers[0] = finish
    return done


@given(graphs(), st.integers(1, 5), st.randoms())
@settings(max_examples=examples(300), deadline=None)
def test_every_node_is_settled_once_after_its_requirements_and_the_finish_last(edges, width, rng):
    graph = graph_of(edges)
    layout = lay_out(graph, width=max(2, width))
    blockers = [layout.finish_blockers]
    done = run(layout, blockers, rng)
    assert sorted(done) == list(range(len(layout.needed_by)))
    assert blockers == [0]
    at = {node: index for index, node in enumerate(done)}
    for position, requires in enumerate(graph.requires):
        assert all(at[required] < at[position] for required in requires)


@given(graphs(), st.integers(2, 5))
@settings(max_examples=examples(200), deadline=None)
def test_no_node_is_fed_by_or_releases_more_than_the_width(edges, width):
    layout = lay_out(graph_of(edges), width=width)
    assert all(len(row) <= max(width, 1) for row in layout.needed_by)
    assert all(count <= width for count in layout.blocked_by)
    assert layout.finish_blockers <= width


@given(graphs(), st.integers(2, 5))
@settings(max_examples=examples(200), deadline=None)
def test_nodes_are_written_before_the_nodes_that_release_them(edges, width):
    layout = lay_out(graph_of(edges), width=width)
    written = set()
    for part in layout.slices(3):
        for node in part:
            assert all(target == FINISH or target in written for target in layout.needed_by[node])
            written.add(node)
    assert len(written) == len(layout.needed_by)


def test_a_cycle_is_named_in_order():
    with pytest.raises(InvalidTemplate) as caught:
        graph_of({"free": set(), "a": {"b", "free"}, "b": {"c"}, "c": {"a"}, "behind": {"a"}})
    [fault] = caught.value.diagnostics
    assert fault.message.startswith("Circular Dependency Found: ")
    walked = fault.message.removeprefix("Circular Dependency Found: ").split(" -> ")
    assert sorted(walked[:-1]) == ["a", "b", "c"]
    assert walked[0] == walked[-1]
    assert caught.value.heat_type == "CircularDependencyException"


def test_a_resource_that_requires_itself_is_a_cycle():
    with pytest.raises(InvalidTemplate, match="a -> a"):
        graph_of({"a": {"a"}})


@given(st.lists(st.sets(st.integers(0, 7)), min_size=8, max_size=8))
def test_existing_resources_are_all_visited_for_any_dependencies(edges):
    names = [f"n{number}" for number in range(8)]
    graph = build_anyhow(names, [{f"n{need}" for need in needs} for needs in edges])
    assert sorted(graph.order) == list(range(8))
    places = {position: place for place, position in enumerate(graph.order)}
    for position, requires in enumerate(graph.requires):
        assert all(places[required] < places[position] for required in requires)


def test_ten_thousand_feeders_meet_in_joins_of_bounded_width():
    edges = {f"f{i}": set() for i in range(10_000)} | {"end": {f"f{i}" for i in range(10_000)}}
    layout = lay_out(graph_of(edges))
    assert layout.blocked_by[10_000] == 20
    assert max(layout.blocked_by) <= 512


def test_a_chain_of_a_hundred_thousand_is_ordered_without_recursion():
    edges = {f"c{i}": {f"c{i - 1}"} if i else set() for i in range(100_000)}
    graph = graph_of(edges)
    assert graph.order[0] == 0
    assert graph.order[-1] == 99_999
