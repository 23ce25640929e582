"""Requests of a user to a stack over HTTP while processes die, and the expected results.

A request without an answer may have been accepted or not. It is repeated until it is answered: an identical
template has no effect, and for other requests the state of the stack decides.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from qa.soak.templates import Resources, files, template

PATIENCE_SECONDS = 120.0  # for an API that does not answer
PAUSE_SECONDS = 0.3
ACTS = ("check", "suspend", "resume", "snapshot")  # bring a stack to no other template
UNSURE = "The template needs more memory"  # message for a lost reading process


class Unanswered(AssertionError):
    """The API did not answer for PATIENCE_SECONDS."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The final answer; `again` if an earlier attempt may have been accepted."""

    status: int
    body: Any
    again: bool


class Api:
    """The API of a project."""

    def __init__(self, url: str) -> None:
        self.client = httpx.Client(
            base_url=f"{url}/v1/demo", timeout=20.0, follow_redirects=True, trust_env=False
        )

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        """Send until there is an answer."""
        deadline, again = time.monotonic() + PATIENCE_SECONDS, False
        while True:
            try:
                answer = self.client.request(method, path, json=body)
                if answer.status_code < 500 and UNSURE not in answer.text:
                    read = (
                        answer.json() if answer.content and "json" in answer.headers["content-type"] else None
                    )
                    return Answer(answer.status_code, read, again)
                said = f"{answer.status_code} {answer.text[:300]}"
            except httpx.TransportError as error:
                said = repr(error)
            if time.monotonic() > deadline:
                raise Unanswered(f"{method} {path}: {said}")
            again = True
            time.sleep(PAUSE_SECONDS)

    def close(self) -> None:
        self.client.close()


@dataclass(frozen=True, slots=True)
class UserRequest:
    """A template as requested."""

    mark: str
    resources: Resources
    broken: bool = False
    rollback: bool = False


NOTHING = UserRequest("", {})  # rollback target of a stack that was never complete


@dataclass(slots=True)
class UserStack:
    """A stack, the last request of its user, and the templates it may roll back to."""

    api: Api
    name: str
    last: UserRequest = NOTHING
    place: str = ""
    number: int = 0
    action: str = ""  # the last accepted action: create, update, cancel, stop, delete, or a member of ACTS
    good: list[UserRequest] = field(default_factory=lambda: [NOTHING])
    steady: bool = False  # no request requires a replacement or a delete

    def create(self, resources: Resources, *, broken: bool = False, rollback: bool = False) -> None:
        requests = self._next(resources, broken, rollback)
        body = {"stack_name": self.name, **self._body(requests)}
        answer = self.api.ask("POST", "/stacks", body)
        assert answer.status == 201 or (answer.again and answer.status == 409), answer
        if answer.status == 201:
            self.place = f"/stacks/{self.name}/{answer.body['stack']['id']}"
        else:
            shown = self.api.ask("GET", f"/stacks/{self.name}").body["stack"]
            self.place = f"/stacks/{self.name}/{shown['id']}"
        self._taken("create", requests, again=answer.again)

    def update(self, resources: Resources, *, broken: bool = False, rollback: bool = False) -> bool:
        """Ask for another template; False when the stack is gone."""
        requests = self._next(resources, broken, rollback)
        answer = self.api.ask("PUT", self.place, self._body(requests))
        if answer.status == 404 and self.action == "delete":
            return False
        assert answer.status == 202, answer
        self._taken("update", requests, again=answer.again)
        return True

    def repeat(self, *, converge: bool) -> None:
        """Send an update that changes nothing."""
        answer = self.api.ask("PATCH", self.place, {"converge": converge})
        assert answer.status == 202, answer
        self.action = "update"

    def cancel(self, *, rollback: bool) -> bool:
        """Cancel the running operation; False if there was none."""
        action = "cancel_update" if rollback else "cancel_without_rollback"
        answer = self.api.ask("POST", f"{self.place}/actions", {action: None})
        if answer.status == 404 and self.action == "delete":
            return False
        taken = answer.status < 300
        if not taken:
            assert answer.status == 400, answer
            if answer.again:  # the unanswered attempt may have been accepted
                taken = self._was_cancelled(rollback)
        if taken:
            self.action = "cancel" if rollback else "stop"
        return taken

    def act(self, action: str) -> bool:
        """Check, suspend, resume or snapshot the stack; False if refused."""
        if action == "snapshot":
            answer = self.api.ask("POST", f"{self.place}/snapshots", {})
        else:
            answer = self.api.ask("POST", f"{self.place}/actions", {action: None})
        taken = answer.status < 300
        assert taken or answer.again or answer.status in (400, 403, 404, 409), answer
        if taken or (answer.again and action == "snapshot"):  # the unanswered attempt may have been accepted
            self.action = action
        return taken

    def _was_cancelled(self, rollback: bool) -> bool:
        shown = self.api.ask("GET", self.place).body["stack"]
        if rollback:
            return bool(shown["stack_status"].startswith("ROLLBACK"))
        return "cancelled" in shown["stack_status_reason"]

    def delete(self) -> None:
        answer = self.api.ask("DELETE", self.place)
        assert answer.status == 204 or (answer.status == 404 and (answer.again or self.action == "delete")), (
            answer
        )
        self.action = "delete"

    def read_status(self) -> str:
        """Return the state of the stack; a complete stack has a rollback target."""
        answer = self.api.ask("GET", self.place)
        if answer.status == 404:
            return "GONE"
        stack = answer.body["stack"]
        state = str(stack["stack_status"])
        if state in {"CREATE_COMPLETE", "UPDATE_COMPLETE"}:
            self.good = [self.last]
        return state

    @property
    def can_go_back_to(self) -> list[UserRequest]:
        """The possible results of a rollback."""
        return [item for item in self.good if item is not self.last]

    def _next(self, resources: Resources, broken: bool, rollback: bool) -> UserRequest:
        self.number += 1
        return UserRequest(f"{self.name}/{self.number}", resources, broken, rollback)

    def _body(self, requests: UserRequest) -> dict[str, Any]:
        number = int(requests.mark.rpartition("/")[2])
        return {
            "template": template(requests.resources, requests.mark),
            "files": files(0 if self.steady else number),
            "disable_rollback": not requests.rollback,
        }

    def _taken(self, action: str, requests: UserRequest, *, again: bool) -> None:
        self.action, self.last = action, requests
        if not requests.broken:
            self.good += (
                [requests, replace(requests)] if again else [requests]
            )  # taken twice, it may go back to itself
