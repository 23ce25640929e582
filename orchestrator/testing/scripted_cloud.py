"""A cloud with prepared answers, for unit tests of types that call OpenStack's services.

    script = ScriptedCloud()
    script.answers("POST", "/ports", {"port": {"id": "p1"}}, status=201)
    script.answers("GET", "/ports/p1", {"port": {"id": "p1", "status": "DOWN"}})
    ctx = Context(..., cloud=script.cloud)

`script.requests` are the requests in their order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.openstack.transport import Answer, Request

Reply = Callable[[Request], Any]  # a JSON value, an `Answer` or an exception


@dataclass(slots=True)
class _Rule:
    service: str
    method: str
    target: re.Pattern[str]
    reply: Reply
    times: int | None


class ScriptedCloud:
    """A transport that answers by rules; the newest rule that matches a request applies."""

    def __init__(self, region: str = "RegionOne", microversions: tuple[str, str] = ("2.1", "2.100")) -> None:
        """Know no request yet: every request without a rule is an AssertionError."""
        self.cloud = Cloud(lambda: self, region)
        self.requests: list[Request] = []
        self.microversions = microversions
        self._rules: list[_Rule] = []

    def answers(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        service: str = "",
        times: int | None = None,
    ) -> None:
        """Answer requests whose path with query matches the regular expression `target` completely.

        `body` is a JSON value, an exception to raise, or a function of the request that returns one of them
        or an `Answer`. `service`: only of this service (nova). `times`: the rule ends after so many requests.
        """

        def reply(request: Request) -> Any:
            value = body(request) if callable(body) and not isinstance(body, type) else body
            if isinstance(value, Exception | Answer):
                return value
            content = b"" if value is None else json.dumps(value).encode()
            return Answer(status, {name.lower(): text for name, text in (headers or {}).items()}, content)

        self._rules.insert(0, _Rule(service, method, re.compile(target), reply, times))

    def sent(self, method: str = "", target: str = ".*") -> list[Request]:
        """Return the requests so far, of a method and a target."""
        return [
            request
            for request in self.requests
            if method in ("", request.method) and re.fullmatch(target, request.target)
        ]

    def send(self, request: Request, seconds: float) -> Answer:  # noqa: ARG002 - of the protocol
        """Return the prepared answer."""
        self.requests.append(request)
        rule = next((rule for rule in self._rules if _matches(rule, request)), None)
        if rule is None:
            raise AssertionError(f"no rule for {request.service}: {request.method} {request.target}")
        if rule.times is not None:
            rule.times -= 1
            if not rule.times:
                self._rules.remove(rule)
        reply = rule.reply(request)
        if isinstance(reply, Exception):
            raise reply
        assert isinstance(reply, Answer)
        return reply

    def versions(self, service: str, service_type: str, seconds: float) -> tuple[str, str]:  # noqa: ARG002
        """Return the prepared microversions."""
        return self.microversions

    def url(self, service: str, service_type: str, seconds: float) -> str:  # noqa: ARG002 - of the protocol
        """Return an invented URL of a service."""
        return f"http://{service}:8080/v1/AUTH_p1"

    def owner(self, seconds: float) -> tuple[str, str]:  # noqa: ARG002 - of the protocol
        """Return invented names of the project and of the user."""
        return "project", "user"


def _matches(rule: _Rule, request: Request) -> bool:
    return (
        rule.service in ("", request.service)
        and rule.method == request.method
        and rule.target.fullmatch(request.target) is not None
    )
