"""The live tree: its order, its abbreviation when space is short, and its counts."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from orchestrator.cli.client.connection import StackId
from orchestrator.cli.output.event_line import counts_text
from orchestrator.cli.watch.model import ProgressModel, layout

FEW = {"total": 5, "counted_at": "2026-01-31T12:00:00Z"}

STACK = StackId("shop", "an-id")


def event(name: str, status: str) -> dict[str, str]:
    return {"resource_name": name, "physical_resource_id": name, "resource_status": status}


def resource(name: str, *required_by: str) -> dict[str, object]:
    return {"resource_name": name, "resource_type": "T", "required_by": list(required_by)}


def drawn(board: ProgressModel, height: int = 50) -> list[str]:
    console = Console(file=io.StringIO(), width=100, height=height, force_terminal=False, highlight=False)
    console.print(board, height=height)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def test_a_resource_stands_once_and_below_the_last_of_those_it_requires() -> None:
    diamond = {
        "ground": ("left", "right"),
        "left": ("middle",),
        "middle": ("roof",),
        "right": ("roof",),
        "roof": (),
    }
    assert layout(diamond) == [("ground", 0), ("left", 1), ("middle", 2), ("roof", 3), ("right", 1)]


@given(
    st.dictionaries(st.text(max_size=3), st.lists(st.text(max_size=3), max_size=4).map(tuple), max_size=12)
)
def test_whatever_a_server_says_of_its_resources_each_is_placed_once(
    required_by: dict[str, tuple[str, ...]],
) -> None:
    assert sorted(name for name, _ in layout(required_by)) == sorted(required_by)


def test_a_chain_of_fifty_thousand_is_laid_out_without_recursion() -> None:
    chain = {str(n): (str(n + 1),) for n in range(50_000)} | {"50000": ()}
    assert layout(chain)[-1] == ("50000", 50_000)


def test_the_tree_shows_states_seconds_and_counts() -> None:
    now = 100.0
    board = ProgressModel(STACK, "CREATE", clock=lambda: now)
    board.add_resources([resource("a", "b"), resource("b"), resource("c")])
    board.add_event(event("a", "CREATE_IN_PROGRESS"))
    now = 102.0
    board.add_event(event("a", "CREATE_COMPLETE"))
    board.add_event(event("b", "CREATE_IN_PROGRESS"))
    now = 103.5
    assert drawn(board) == [
        "CREATE shop  1 of 3 complete, 1 in progress  4s, about 7s left",
        "  ✔ a  T  2.0s",
        "    ● b  T  1.5s",
        "  · c  T",
    ]


def test_a_tree_without_room_shows_what_fails_and_runs_first_and_stays_within_its_window() -> None:
    board = ProgressModel(STACK, "CREATE", clock=lambda: 0.0)
    board.add_resources([resource(f"r{n:03}") for n in range(300)])
    for n in range(200):
        board.add_event(event(f"r{n:03}", "CREATE_COMPLETE"))
    board.add_event(event("r250", "CREATE_IN_PROGRESS"))
    board.add_event(event("r299", "CREATE_FAILED"))
    lines = drawn(board, height=12)
    assert len(lines) <= 12
    assert any("✘ r299" in text for text in lines)
    assert any("● r250" in text for text in lines)
    assert lines[-1] == "  … and 292 more"


def test_events_of_the_stack_itself_are_not_counted_as_a_resource() -> None:
    board = ProgressModel(STACK, "CREATE")
    board.add_event(
        {"resource_name": "shop", "physical_resource_id": "an-id", "resource_status": "CREATE_IN_PROGRESS"}
    )
    assert not board.items


def test_the_list_is_asked_for_once_something_happened_and_again_when_an_unknown_turns_up() -> None:
    now = 0.0
    board = ProgressModel(STACK, "CREATE", clock=lambda: now)
    assert not board.wants_resources()
    board.add_event(event("a", "CREATE_IN_PROGRESS"))
    assert not board.wants_resources()
    board.set_counts(FEW)
    assert board.wants_resources()
    board.add_resources([resource("a")])
    assert not board.wants_resources()
    now = 10.0
    assert not board.wants_resources()
    board.add_event(event("b", "CREATE_IN_PROGRESS"))
    assert board.wants_resources()


def test_of_a_stack_that_is_too_big_to_list_the_server_s_figures_are_shown() -> None:
    now = 100.0
    board = ProgressModel(STACK, "CREATE", clock=lambda: now)
    assert not board.wants_counts()
    board.add_event(event("a", "CREATE_IN_PROGRESS"))
    assert board.wants_counts()
    assert not board.wants_resources()
    figures = {"total": 9_000, "ready": 2_500, "failed": 1, "running": 7, "waiting": 92, "blocked": 6_400}
    board.set_counts({**figures, "counted_at": "2026-01-31T12:00:00Z"})
    assert drawn(board, height=6)[0].startswith("CREATE shop  2500 of 9000 complete, 7 in progress, 1 failed")
    assert not board.wants_counts()
    now = 103.0
    assert board.wants_counts()
    assert not board.wants_resources()


def nested(
    name: str, status: str, stack: str = "shop-db-x1", stack_id: str = "nested-id"
) -> dict[str, object]:
    href = f"http://there/v1/demo/stacks/{stack}/{stack_id}"
    return {**event(name, status), "links": [{"rel": "stack", "href": href}]}


def test_resources_of_a_nested_stack_are_drawn_below_the_resource_that_owns_it() -> None:
    board = ProgressModel(STACK, "CREATE", clock=lambda: 100.0)
    board.add_resources([resource("db"), resource("web")])
    board.add_event(event("db", "CREATE_IN_PROGRESS") | {"physical_resource_id": "nested-id"})
    board.add_event(nested("volume", "CREATE_COMPLETE"))
    board.add_event(nested("db", "CREATE_IN_PROGRESS"))  # the same name as in the stack itself
    lines = drawn(board)
    assert lines[0] == "CREATE shop  0 of 2 complete, 1 in progress; in nested stacks: 1 of 2 complete  0s"
    assert [line.split()[1] for line in lines[1:]] == ["db", "volume", "db", "web"]
    assert lines[2].startswith("    ✔ volume")


COUNTS = {"total": 8, "ready": 3, "failed": 0, "running": 2, "waiting": 1, "blocked": 2}
ROLLOUT = {"resource_name": "workers", "batch": 3, "batches": 10, "updated": 60, "total": 200}


def test_the_counts_of_a_stack_with_nested_stacks_cover_them() -> None:
    now = 100.0
    board = ProgressModel(STACK, "UPDATE", clock=lambda: now)
    board.add_resources([resource("db"), resource("web")])
    board.add_event(event("db", "UPDATE_IN_PROGRESS"))
    board.add_event(nested("volume", "UPDATE_COMPLETE"))
    assert board.wants_counts()
    board.set_counts({**COUNTS, "counted_at": "2026-01-31T12:00:00Z", "rollouts": [ROLLOUT]})
    assert drawn(board)[0] == (
        "UPDATE shop  3 of 8 complete, 2 in progress  0s; workers: batch 3 of 10, 60 of 200 updated"
    )
    for name in ("a", "b", "c", "d"):
        board.add_event(nested(name, "UPDATE_COMPLETE"))
    assert drawn(board)[0].startswith("UPDATE shop  5 of 8 complete, 0 in progress")
    assert not board.wants_counts()
    now = 103.0
    assert board.wants_counts()


def test_a_line_of_counts_names_the_batches() -> None:
    assert counts_text({**COUNTS, "rollouts": [ROLLOUT]}, 20.0) == (
        "3 of 8 complete, 2 in progress, 3 waiting, about 20s left; workers: batch 3 of 10, 60 of 200 updated"
    )
    assert counts_text(COUNTS) == "3 of 8 complete, 2 in progress, 3 waiting"


def test_members_of_a_group_are_in_their_order_and_have_a_path_without_their_owner() -> None:
    board = ProgressModel(STACK, "CREATE", clock=lambda: 100.0)
    board.add_event({**event("group", "CREATE_IN_PROGRESS"), "physical_resource_id": "child-id"})
    links = [{"rel": "stack", "href": "http://there/v1/p/stacks/shop-group/child-id"}]
    for name in ("10", "9", "1"):
        board.add_event({**event(name, "CREATE_IN_PROGRESS"), "links": links})  # type: ignore[dict-item]
    assert [line.split()[1] for line in drawn(board)[1:5]] == ["group", "1", "9", "10"]
    short = drawn(board, height=7)
    assert all("group" in line for line in short[1:4])
