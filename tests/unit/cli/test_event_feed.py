"""Following a stack: the end of the action, the cost of a lost connection, and servers without streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import httpx
import pytest

from orchestrator.cli.client.api_client import Client
from orchestrator.cli.client.connection import Connection, NoStream, StackId, read_messages
from orchestrator.cli.exit_codes import Exit, Failure
from orchestrator.cli.watch.follow import End, follow
from orchestrator.cli.watch.wait import failed

STACK = StackId("s", "1")
Message = tuple[str, str, dict[str, Any]]


def event(number: int, status: str, name: str = "s") -> dict[str, Any]:
    """Return an event, of the stack itself unless a resource is named."""
    return {
        "id": str(number),
        "sequence": f"{number}.0",
        "resource_name": name,
        "physical_resource_id": "1" if name == "s" else "x",
        "resource_status": status,
        "resource_status_reason": f"reason {number}",
    }


class NoResources:
    """The resources of a stack without failed resources."""

    def list_all(self, stack: StackId, query: Any = None) -> list[dict[str, Any]]:
        return []


class Server:
    """A server with a history, that cuts its streams where it is told to."""

    def __init__(self, *history: dict[str, Any], cuts: tuple[int, ...] = (), streams: bool = True) -> None:
        self.history, self.cuts, self.streams = list(history), set(cuts), streams
        self.status, self.connection = "UPDATE_IN_PROGRESS", Connection("http://there", "demo")
        self.asked: list[str] = []
        self.stacks = self.events = self
        self.resources = NoResources()
        self.disable_rollback = True

    def stream(self, stack: StackId | None, after: str, seconds: float | None, nested: int = 0) -> Any:
        if not self.streams:
            raise NoStream
        self.asked.append(after)
        return self._messages(float(after))

    def _messages(self, after: float) -> Iterator[Message]:
        for item in self.history:
            if int(item["id"]) > after:
                if int(item["id"]) in self.cuts:
                    self.cuts.remove(int(item["id"]))
                    raise httpx.ReadError("cut")
                yield "message", item["sequence"], item
        yield "caught-up", "9.0", {}

    def list_all(self, stack: StackId, *, after: str | None = None, **_: Any) -> Iterator[dict[str, Any]]:
        yield from (item for item in self.history if int(item["id"]) > int(after or 0))

    def show(self, stack: Any, *, outputs: bool = True) -> dict[str, Any]:
        shown = {"stack_status": self.status, "stack_status_reason": "shown"}
        return shown | {"disable_rollback": self.disable_rollback}


def followed(server: Server, **options: Any) -> tuple[list[str], End]:
    *events, end = list(
        follow(cast(Client, server), STACK, idle=lambda _: None, **{"after": None, **options})
    )
    assert isinstance(end, End)
    return [item["id"] for item in events if not isinstance(item, End)], end


BEFORE_OURS = (
    event(1, "CREATE_IN_PROGRESS"),
    event(2, "CREATE_FAILED", "a"),
    event(3, "CREATE_FAILED"),
    event(4, "UPDATE_IN_PROGRESS"),
    event(5, "UPDATE_COMPLETE", "a"),
    event(6, "UPDATE_COMPLETE"),
)


@pytest.mark.parametrize("streams", [True, False])
def test_what_ended_before_ours_began_is_not_our_end(streams: bool) -> None:
    server = Server(*BEFORE_OURS, streams=streams)
    ids, end = followed(server, after=BEFORE_OURS[0], action="UPDATE")
    assert ids == ["2", "3", "4", "5", "6"]
    assert (end.status, end.reason, end.causes) == ("UPDATE_COMPLETE", "reason 6", {})


def test_without_an_action_the_first_end_is_the_end() -> None:
    ids, end = followed(Server(*BEFORE_OURS))
    assert (ids, end.status, end.causes) == (["1", "2", "3"], "CREATE_FAILED", {"a": "reason 2"})


def test_an_action_that_had_nothing_to_do_ends_with_the_stack_at_rest() -> None:
    server = Server(event(1, "SUSPEND_COMPLETE"))
    server.status = "SUSPEND_COMPLETE"
    ids, end = followed(server, after=server.history[0], action="SUSPEND")
    assert (ids, end.status, end.reason) == ([], "SUSPEND_COMPLETE", "shown")


def test_a_stream_that_is_cut_goes_on_where_it_was() -> None:
    server = Server(*BEFORE_OURS, cuts=(3, 5))
    ids, _ = followed(server, action="UPDATE")
    assert ids == ["1", "2", "3", "4", "5", "6"]
    assert server.asked == ["0.0", "2.0", "4.0"]


def test_an_older_server_is_asked_for_lists_from_the_same_place() -> None:
    recorded = {key: value for key, value in BEFORE_OURS[0].items() if key != "sequence"}
    ids, _ = followed(Server(*BEFORE_OURS), after=recorded, action="UPDATE")
    assert ids == ["2", "3", "4", "5", "6"]


ROLLED_BACK = (
    event(1, "CREATE_IN_PROGRESS"),
    event(2, "CREATE_FAILED", "a"),
    event(3, "CREATE_FAILED"),
    event(4, "ROLLBACK_IN_PROGRESS"),
    event(5, "DELETE_COMPLETE", "a"),
    event(6, "ROLLBACK_COMPLETE"),
)


def test_following_continues_to_the_end_of_an_automatic_rollback_which_counts_as_failed() -> None:
    server = Server(*ROLLED_BACK)
    server.disable_rollback = False
    ids, end = followed(server)
    assert ids == ["1", "2", "3", "4", "5", "6"]
    assert (end.status, end.failed, end.causes) == ("ROLLBACK_COMPLETE", True, {"a": "reason 2"})
    assert end.rolled_back is not None
    assert (end.rolled_back.status, end.rolled_back.reason) == ("CREATE_FAILED", "reason 3")


def test_the_failure_of_a_nested_stack_is_no_cause_besides_its_resources() -> None:
    links = [{"rel": "stack", "href": "http://h/v1/demo/stacks/s-kid-x/kid-id"}]
    own = event(3, "CREATE_FAILED", "s-kid-x") | {"links": links, "physical_resource_id": "kid-id"}
    inner = event(2, "CREATE_FAILED", "a") | {"links": links}
    server = Server(event(1, "CREATE_IN_PROGRESS"), inner, own, event(4, "CREATE_FAILED"))
    server.status = "CREATE_FAILED"
    assert followed(server)[1].causes == {"a": "reason 2"}


def test_the_message_of_a_rolled_back_action_names_the_action() -> None:
    failure = failed(STACK, End("ROLLBACK_COMPLETE", "fine", {}, End("UPDATE_FAILED", "no quota")))
    assert failure.message == "the UPDATE of stack s failed: no quota; the rollback succeeded"


def test_a_failure_that_is_not_rolled_back_after_all_is_the_end() -> None:
    server = Server(*ROLLED_BACK[:3])
    server.disable_rollback, server.status = False, "CREATE_FAILED"
    ids, end = followed(server)
    assert ids == ["1", "2", "3"]
    assert (end.status, end.failed, end.rolled_back) == ("CREATE_FAILED", True, None)


def test_the_time_that_was_given_runs_out_although_nothing_happens() -> None:
    with pytest.raises(Failure) as caught:
        followed(Server(event(1, "UPDATE_IN_PROGRESS")), timeout_seconds=0.01)
    assert caught.value.exit_code == Exit.TIMEOUT


def test_messages_are_read_as_browsers_read_them() -> None:
    lines = [
        "retry: 500", "", ": still here", "", "id: 1.2", 'data: {"a":', "data: 1}", "",
        "id: 3.0", "event: caught-up", "data: {}", "", "id: 4.0", 'data: {"cut": true}',
    ]  # fmt: skip
    assert list(read_messages(lines)) == [
        ("", "", {}),
        ("message", "1.2", {"a": 1}),
        ("caught-up", "3.0", {}),
    ]
