"""The live tree: the order it is drawn in, what it shows when there is no room, and how it counts."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from orchestrator.cli.client.api_client import StackId
from orchestrator.cli.watch.progress import ProgressModel, layout

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
    board.plan([resource("a", "b"), resource("b"), resource("c")])
    board.take(event("a", "CREATE_IN_PROGRESS"))
    now = 102.0
    board.take(event("a", "CREATE_COMPLETE"))
    board.take(event("b", "CREATE_IN_PROGRESS"))
    now = 103.5
    assert drawn(board) == [
        "CREATE shop  1 of 3 complete, 1 running  4s",
        "  ✔ a  T  2.0s",
        "    ● b  T  1.5s",
        "  · c  T",
    ]


def test_a_tree_without_room_shows_what_fails_and_runs_first_and_stays_within_its_window() -> None:
    board = ProgressModel(STACK, "CREATE", clock=lambda: 0.0)
    board.plan([resource(f"r{n:03}") for n in range(300)])
    for n in range(200):
        board.take(event(f"r{n:03}", "CREATE_COMPLETE"))
    board.take(event("r250", "CREATE_IN_PROGRESS"))
    board.take(event("r299", "CREATE_FAILED"))
    lines = drawn(board, height=12)
    assert len(lines) <= 12
    assert any("✘ r299" in text for text in lines)
    assert any("● r250" in text for text in lines)
    assert lines[-1] == "  … and 292 more"


def test_events_of_the_stack_itself_are_not_counted_as_a_resource() -> None:
    board = ProgressModel(STACK, "CREATE")
    board.take(
        {"resource_name": "shop", "physical_resource_id": "an-id", "resource_status": "CREATE_IN_PROGRESS"}
    )
    assert not board.items


def test_the_list_is_asked_for_once_something_happened_and_again_when_an_unknown_turns_up() -> None:
    now = 0.0
    board = ProgressModel(STACK, "CREATE", clock=lambda: now)
    assert not board.incomplete()
    board.take(event("a", "CREATE_IN_PROGRESS"))
    assert not board.incomplete()
    board.count(FEW)
    assert board.incomplete()
    board.plan([resource("a")])
    assert not board.incomplete()
    now = 10.0
    assert not board.incomplete()
    board.take(event("b", "CREATE_IN_PROGRESS"))
    assert board.incomplete()


def test_of_a_stack_that_is_too_big_to_list_the_server_s_figures_are_shown() -> None:
    now = 100.0
    board = ProgressModel(STACK, "CREATE", clock=lambda: now)
    assert not board.uncounted()
    board.take(event("a", "CREATE_IN_PROGRESS"))
    assert board.uncounted()
    assert not board.incomplete()
    figures = {"total": 9_000, "ready": 2_500, "failed": 1, "running": 7, "waiting": 92, "blocked": 6_400}
    board.count({**figures, "counted_at": "2026-01-31T12:00:00Z"})
    assert drawn(board, height=6)[0].startswith("CREATE shop  2500 of 9000 complete, 7 running, 1 failed")
    assert not board.uncounted()
    now = 103.0
    assert board.uncounted()
    assert not board.incomplete()
