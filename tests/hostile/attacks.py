"""Attacks on budgets and quotas: series of requests of a hostile project.

Each function returns or is a `Client` of `flood.Flood`. The functions run in a separate process, hence they
are picklable: functions of this module, with their constant arguments bound by `functools.partial`.
"""

from __future__ import annotations

import base64
import json
import time
from functools import cache
from typing import Any
from urllib.parse import quote

from tests.hostile.flood import Request, Requests

TESTED = "OS::Heat::TestResource"
VALUES = 14  # large values of a stack
DOUBLINGS = 12  # of 2,000 characters: 8.19 million, slightly below the maximum of a value
LARGE = 1_000  # resources of a large stack
POLL_SECONDS = 0.5


def template(resources: dict[str, Any], **sections: Any) -> dict[str, Any]:
    """Return a template."""
    return {"heat_template_version": "2021-04-16", "resources": resources, **sections}


def multiplied(doublings: int, characters: int = 1024) -> Any:
    """Return an expression for a text, doubled so often."""
    value: Any = "x" * characters
    for _ in range(doublings):
        value = {"str_replace": {"template": "aa", "params": {"a": value}}}
    return value


def expensive(number: int) -> dict[str, Any]:
    """Return a `yaql` expression that uses all of its processor time; the result is not in a cache."""
    text = "a" * 40 + str(number)
    return {"yaql": {"expression": "regex('^(a+)+$').matches($.data)", "data": text}}


def nested_outputs() -> dict[str, Any]:
    """Return a template whose outputs fill a response."""
    outputs = {f"o{number}": {"value": multiplied(12)} for number in range(8)}
    return template({"a": {"type": "OS::Heat::None"}}, outputs=outputs)


def expensive_outputs(number: int) -> dict[str, Any]:
    """Return a template whose outputs are evaluated at each request."""
    outputs = {f"o{index}": {"value": expensive(number + index)} for index in range(5)}
    return template({"a": {"type": "OS::Heat::None"}}, outputs=outputs)


def read(path: str, _number: int) -> Requests:
    """Read a path."""
    yield Request("GET", path)


def large_values(stacks: str, number: int) -> Requests:
    """Create a stack with large values, and delete it."""
    value = {"type": "OS::Heat::Value", "properties": {"value": multiplied(DOUBLINGS, 2_000)}}
    yield from _create_and_delete(stacks, number, template({f"v{index}": value for index in range(VALUES)}))


def large_stacks(stacks: str, number: int) -> Requests:
    """Create a stack with many resources, and delete it."""
    resources = {f"r{index}": {"type": TESTED, "properties": {"value": "x"}} for index in range(LARGE)}
    yield from _create_and_delete(stacks, number, template(resources))


def large_reads(stacks: str, stack: str, number: int) -> Requests:
    """Read all events of a large stack, also as a stream, and preview a large group."""
    match number % 3:
        case 0:
            yield Request("GET", f"{stack}/events?limit=1000000&nested_depth=9")
        case 1:
            yield Request("GET", f"{stack}/events/stream?after=0.0&until_end=true")
        case _:
            members = {"type": "OS::Heat::RandomString"}
            group = {
                "type": "OS::Heat::ResourceGroup",
                "properties": {"count": 20_000, "resource_def": members},
            }
            yield _post(f"{stacks}/preview", {"stack_name": "preview", "template": template({"g": group})})


def large_files(stacks: str, number: int) -> Requests:
    """Create a stack with a file of 7 MB, and delete it: it counts until it is purged."""
    resources = {"a": {"type": TESTED, "properties": {"value": {"get_file": "f"}}}}
    files = {"f": f"{number}" + "x" * 7_000_000}
    yield from _create_and_delete(stacks, number, template(resources), files=files)


def slow_previews(stacks: str, number: int) -> Requests:
    """Preview a list of many short values, the slowest text per byte."""
    text = "heat_template_version: 2021-04-16\nresources:\n  a:\n    type: OS::Heat::Value\n    properties:\n"
    values = ",".join(["a"] * 4_000_000)
    body = {"stack_name": f"preview{number}", "template": f"{text}      value: [{values}]\n"}
    yield _post(f"{stacks}/preview", body)


def many_stacks(stacks: str, number: int) -> Requests:
    """Create a small stack."""
    yield _post(stacks, {"stack_name": f"s{number}", "template": template({"a": {"type": TESTED}})})


def large_signals(handle: str, number: int) -> Requests:
    """Send a large signal to a wait condition handle."""
    data = {"id": str(number), "status": "SUCCESS", "reason": "", "data": "x" * 900_000}
    answer = yield _post(f"{handle}/signal", data)
    if answer[0] >= 400:  # the handle is full: the next signals replace stored ones
        yield _post(f"{handle}/signal", {**data, "id": "0"})


def large_validations(project: str, _number: int) -> Requests:
    """Validate a large template."""
    yield Request("POST", f"/v1/{project}/validate", _large_template())


def expensive_expressions(project: str, stack: str, number: int) -> Requests:
    """Evaluate expensive expressions in outputs, in properties, and in previews."""
    stacks = f"/v1/{project}/stacks"
    values = {"type": "OS::Heat::Value", "properties": {"value": expensive(number)}}
    created = template({f"v{index}": values for index in range(5)})
    match number % 3:
        case 0:
            yield Request("GET", stack)
        case 1:
            yield _post(f"{stacks}/preview", {"stack_name": "preview", "template": created})
        case _:
            yield from _create_and_delete(stacks, number, created)


def hostile_filters(project: str, number: int) -> Requests:
    """Filter the resource types by a pattern that backtracks."""
    pattern = quote(f"(([A-Za-z:]*)*)*$\\d{number}")
    yield Request("GET", f"/v1/{project}/resource_types?name={pattern}")


def hostile_patterns(stacks: str, number: int) -> Requests:
    """Preview a template of parameters with patterns that share a long text."""
    first = f"parameters:\n  p: {{type: string, default: &text {'x' * 9_900}}}\n"
    others = ""
    for index in range(60):
        pattern = f"{{allowed_pattern: 'x*x*y{60 * number + index}'}}"
        others += f"  p{index}: {{type: string, default: *text, constraints: [{pattern}]}}\n"
    text = f"heat_template_version: '2021-04-16'\n{first}{others}resources: {{a: {{type: OS::Heat::None}}}}\n"
    yield _post(f"{stacks}/preview", {"stack_name": "preview", "template": text})


def hostile_acceptances(project: str, number: int) -> Requests:
    """Accept differences whose path has very many stars."""
    body = {"kind": "accept", "stack": "accepted", "reason": "ours", "all": True}
    for path in (f"*.properties.{'*?' * 60}Z{number}", f"*.properties.{'*a' * 60}Z{number}"):
        yield _post(f"/v1/{project}/observation_policies", {**body, "path": path})


def hanging_resources(stacks: str, number: int) -> Requests:
    """Create a stack that hangs the worker for resources at providers, and delete it."""
    hanging = {"type": "Test::RemoteHang", "properties": {"where": "create", "how": "spin"}}
    yield from _create_and_delete(stacks, number, template({"bad": hanging}))


def foreign_pages(stacks: str, number: int) -> Requests:
    """Send requests of other sites' pages, and requests with wrong tokens."""
    body = {"stack_name": f"s{number}", "template": template({"a": {"type": TESTED}})}
    foreign = (
        {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
        {"Origin": "null"},
        {"X-Auth-Token": f"wrong{number}"},
    )
    for headers in foreign:
        request = _post(stacks, body)
        yield Request(request.method, request.path, request.body, headers)


def wrong_passwords(stacks: str, user: str, number: int) -> Requests:
    """Try passwords of an existing user and of an unknown user."""
    for name in (user, f"unknown{number}"):
        login = base64.b64encode(f"{name}:wrong{number}".encode()).decode()
        yield Request("GET", stacks, headers={"Authorization": f"Basic {login}"})


@cache
def _large_template() -> bytes:
    resources = {
        f"item_{index}": {"type": TESTED, "properties": {"value": "x" * 20}} for index in range(30_000)
    }
    return json.dumps({"template": template(resources)}).encode()


def _create_and_delete(stacks: str, number: int, content: dict[str, Any], **further: Any) -> Requests:
    status, body = yield _post(stacks, {"stack_name": f"s{number}", "template": content, **further})
    if status != 201:
        return
    place = f"{stacks}/s{number}/{json.loads(body)['stack']['id']}"
    while True:
        status, body = yield Request("GET", f"{place}?resolve_outputs=false")
        if status == 404 or (status == 200 and b"_IN_PROGRESS" not in body):
            break
        time.sleep(POLL_SECONDS)
    yield Request("DELETE", place)


def _post(path: str, body: object) -> Request:
    return Request("POST", path, json.dumps(body).encode())
