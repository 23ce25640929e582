"""Bad input as requests: refusals with texts that clients rely on (docs/internals/rest-api.md §1, §2), and
Heat's limits.

`test_bad_input_http.py` covers malformed bytes, `test_api_isolation.py` foreign ids,
`tests/unit/clients/test_url_fetcher.py` addresses that must not be fetched. An update during a delete is
accepted here and refused by Heat: docs/compatibility.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from api.app import create_app
from orchestrator.config import Settings
from orchestrator.security.encryption import new_key
from tests.integration.api_world import Client, World

HOT = "2021-04-16"
PLAIN = {"heat_template_version": HOT, "resources": {"a": {"type": "OS::Heat::None"}}}
IMMUTABLE = {
    "heat_template_version": HOT,
    "parameters": {"p": {"type": "string", "default": "x", "immutable": True}},
}
NEEDY = {"heat_template_version": HOT, "parameters": {"p": {"type": "string"}}}
NOWHERE = "7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01"
MALFORMED = (
    "The server could not comply with the request since it is either malformed or otherwise incorrect."
)
EXPLANATIONS = {
    400: MALFORMED,
    403: "Access was denied to this resource.",
    404: "The resource could not be found.",
    405: MALFORMED,
    409: "There was a conflict when trying to complete your request.",
}
TABLES = ("stack", "revision", "resource", "graph_node", "event", "snapshot", "software_config", "content")


def resources(number: int) -> dict[str, Any]:
    return {**PLAIN, "resources": {f"r{item}": {"type": "OS::Heat::None"} for item in range(number)}}


def ring() -> dict[str, Any]:
    a = {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["b", "value"]}}}
    b = {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["a", "value"]}}}
    return {**PLAIN, "resources": {"a": a, "b": b}}


def deep(levels: int) -> str:
    return '{"stack_name": "s", "template": ' + "[" * levels + "]" * levels + "}"


def made(**options: Any) -> dict[str, Any]:
    """Return the body of a valid create, with the given changes."""
    return {"stack_name": "s", "template": PLAIN, **options}


@dataclass
class Served:
    """The application under Heat's limits, and the world beneath it."""

    api: Client
    world: World
    places: dict[str, str]

    def rows(self) -> list[int]:
        counts = ", ".join(f"(SELECT count(*) FROM {table})" for table in TABLES)
        with self.world.database.engine.connect() as connection:
            return list(connection.execute(text(f"SELECT {counts}")).one())


@pytest.fixture(scope="module")
def served(
    new_database: Callable[[], str], valkey_server: Any, broker_numbers: Iterator[int]
) -> Iterator[Served]:
    """A project with stacks in every state that refuses something."""
    world = World(new_database())
    settings = Settings(
        broker_url=SecretStr(valkey_server.url(next(broker_numbers))),
        encryption_keys=SecretStr(new_key()),
        limits="heat",
    )
    client = Client(create_app(settings, world.database).test_client(), "/v1")
    states = {
        "complete": ("CREATE", "COMPLETE"),
        "busy": ("UPDATE", "IN_PROGRESS"),
        "suspended": ("SUSPEND", "COMPLETE"),
    }
    places = {}
    for name, (action, status) in states.items():
        stack = world.stack("p", name, action=action, status=status)
        world.resource(stack, "one", action=action, status=status, type="OS::Heat::None")
        places[name] = stack.path
    places["misnamed"] = places["complete"].replace("complete", "misnamed")
    for name, template in (("fixed", IMMUTABLE), ("live", PLAIN)):
        place = client.ask("POST", "/p/stacks", 201, json={"stack_name": name, "template": template})
        places[name] = place["stack"]["links"][0]["href"].removeprefix("http://localhost/v1")
    with world.database.engine.begin() as connection:  # a project that is full
        connection.execute(
            text(
                "INSERT INTO stack"
                " (id, uuid, project_id, name, root_id, action, status, status_reason, created_at)"
                " SELECT id, gen_random_uuid(), 'full', 's' || n, id, 'CREATE', 'COMPLETE', '', now()"
                " FROM (SELECT n, nextval(pg_get_serial_sequence('stack', 'id')) AS id"
                "       FROM generate_series(1, 512) n) made"
            )
        )
    yield Served(client, world, places)
    world.database.engine.dispose()


# name -> method, path (a stack in braces), body, status, error.type, error.message; "…": its beginning
REFUSED: dict[str, tuple[str, str, Any, int, str, str]] = {
    "no such stack": (
        *("GET", "/p/stacks/nope", None, 404),
        *("EntityNotFound", "The Stack (nope) could not be found."),
    ),
    "right id, wrong name": (
        *("GET", "{misnamed}", None, 404),
        *("EntityNotFound", "The Stack (misnamed) could not be found."),
    ),
    "duplicate name": (
        *("POST", "/p/stacks", made(stack_name="complete"), 409),
        *("StackExists", "The Stack (complete) already exists."),
    ),
    "no such resource": (
        *("GET", "{complete}/resources/zz", None, 404),
        *("ResourceNotFound", "The Resource (zz) could not be found in Stack complete."),
    ),
    "snapshot of a busy stack": (
        *("POST", "{busy}/snapshots", {}, 409),
        *("ActionInProgress", "Stack busy already has an action (UPDATE) in progress."),
    ),
    "update of a suspended stack": (
        *("PUT", "{suspended}", {"template": PLAIN}, 400),
        *("NotSupported", "Updating a stack when it is suspended is not supported."),
    ),
    "cancel of what is not updated": (
        *("POST", "{complete}/actions", {"cancel_update": None}, 400),
        *("NotSupported", "Cancelling update when stack is CREATE_COMPLETE is not supported."),
    ),
    "abandon where it is off": (
        *("DELETE", "{complete}/abandon", None, 400),
        *("NotSupported", "Stack Abandon is not supported."),
    ),
    "export where it is off": (
        *("GET", "{complete}/export", None, 400),
        *("NotSupported", "Stack Abandon is not supported."),
    ),
    "adopt where it is off": (
        *("POST", "/p/stacks", {"stack_name": "s", "adopt_stack_data": "{}"}, 400),
        *("NotSupported", "Stack Adopt is not supported."),
    ),
    "signal to a stack that is suspended": (
        *("POST", "{suspended}/resources/one/signal", {}, 400),
        *("NotSupported", "Signal resource during SUSPEND is not supported."),
    ),
    "missing parameter": (
        *("POST", "/p/stacks", made(template=NEEDY), 400),
        *("UserParameterMissing", "The Parameter (p) was not provided."),
    ),
    "unknown parameter": (
        *("POST", "/p/stacks", made(parameters={"zz": 1}), 400),
        *("UnknownUserParameter", "The Parameter (zz) was not defined in template."),
    ),
    "immutable parameter": (
        *("PUT", "{fixed}", {"template": IMMUTABLE, "parameters": {"p": "y"}}, 400),
        *(
            "ImmutableParameterModified",
            "The following parameters are immutable and may not be updated: p",
        ),
    ),
    "too many stacks": (
        *("POST", "/full/stacks", made(), 400),
        "RequestLimitExceeded",
        "Request limit exceeded: You have reached the maximum stacks per tenant, 512."
        " Please delete some stacks.",
    ),
    "too large a template": (
        *("POST", "/p/stacks", made(template="#" * 524_289), 400),
        "RequestLimitExceeded",
        "Request limit exceeded: Template size (524289 bytes) exceeds maximum allowed size (524288 bytes).",
    ),
    "too many resources": (
        *("POST", "/p/stacks", made(template=resources(1_001)), 400),
        *("RequestLimitExceeded", "Request limit exceeded: Maximum resources per stack exceeded."),
    ),
    "a cycle": (
        *("POST", "/p/stacks", made(template=ring()), 400),
        *("CircularDependencyException", "Circular Dependency Found: …"),
    ),
    "a bad name": (
        *("POST", "/p/stacks", made(stack_name="1s"), 400),
        "StackValidationFailed",
        'Invalid stack name 1s must contain only alphanumeric or "_-." characters, must start with alpha '
        "and must be 255 characters or less.",
    ),
    "too long a name": (
        *("POST", "/p/stacks", made(stack_name="s" * 256), 400),
        *("StackValidationFailed", "Invalid stack name s…"),
    ),
    "no version of the language": (
        *("POST", "/p/stacks", made(template={"resources": {}}), 400),
        *("InvalidTemplateVersion|HTTPBadRequest", "Template not in valid format: …|The template version …"),
    ),
    "a text that is no template": (
        *("POST", "/p/stacks", made(template="a: ["), 400),
        *("HTTPBadRequest", "Template not in valid format: …|Error parsing template: …"),
    ),
    "a wrong section of an environment": (
        *("POST", "/p/stacks", made(environment={"zzz": {}}), 400),
        *("HTTPBadRequest", 'Environment not in valid format: environment has wrong section "zzz"'),
    ),
    "a faulty property": (
        "POST",
        "/p/stacks",
        made(
            template={
                **PLAIN,
                "resources": {"a": {"type": "OS::Heat::RandomString", "properties": {"length": "x"}}},
            }
        ),
        400,
        "StackValidationFailed",
        "Property error: : resources.a.properties.length: : …",
    ),
    "a type that is not there": (
        "POST",
        "/p/stacks",
        made(template={**PLAIN, "resources": {"a": {"type": "OS::Nova::Server"}}}),
        400,
        "ResourceTypeUnavailable|StackValidationFailed",
        "HEAT-E99001 Service nova is not available for resource type OS::Nova::Server, reason: …",
    ),
    "no name": ("POST", "/p/stacks", {"template": PLAIN}, 400, "HTTPBadRequest", "No stack name specified"),
    "no template": ("PUT", "{live}", {}, 400, "HTTPBadRequest", "No template specified"),
    "tags as a list": ("POST", "/p/stacks", made(tags=["a"]), 400, "…", "…"),
    "too long a tag": ("POST", "/p/stacks", made(tags="t" * 81), 400, "…", "Invalid tag, …"),
    "a negative timeout": ("POST", "/p/stacks", made(timeout_mins=-1), 400, "HTTPBadRequest", "…"),
    "a huge timeout": ("POST", "/p/stacks", made(timeout_mins=10**30), 400, "…", "…"),
    "no boolean": ("POST", "/p/stacks", made(disable_rollback="maybe"), 400, "…", "Unrecognized value …"),
    "converge of what is not there": ("POST", "/p/stacks", made(converge=True), 400, "…", "…"),
    "no action": ("POST", "{complete}/actions", {}, 400, "…", "No action specified"),
    "two actions": (
        *("POST", "{complete}/actions", {"check": None, "suspend": None}, 400),
        *("…", "Multiple actions specified"),
    ),
    "an unknown action": ("POST", "{complete}/actions", {"x": 1}, 400, "…", "Invalid action x specified"),
    "an unknown filter of resources": (
        *("GET", "{complete}/resources?zz=1", None, 400),
        *("…", "Invalid filter parameters ['zz']"),
    ),
    "no boolean in a query": (
        *("GET", "/p/stacks?show_nested=1", None, 400),
        *("…", 'Unrecognized value "1" for "show_nested", acceptable values are: true, false.'),
    ),
    "no integer in a query": (
        *("GET", "/p/stacks?limit=x", None, 400),
        *("…", "Only integer is acceptable by 'limit'."),
    ),
    "a negative integer in a query": (
        *("GET", "/p/stacks?limit=-1", None, 400),
        *("…", "Value '-1' is invalid for 'limit' which only accepts non-negative integer."),
    ),
    "a huge integer of other digits": ("GET", "{complete}/events?limit=" + "٣" * 5_000, None, 400, "…", "…"),
    "all projects": ("GET", "/p/stacks?global_tenant=true", None, 403, "Forbidden|HTTPForbidden", "…"),
    "an unknown output": (
        *("GET", "{complete}/outputs/zz", None, 404),
        *("NotFound", "Specified output key zz not found."),
    ),
    "an unknown snapshot": (
        *("GET", f"{{complete}}/snapshots/{NOWHERE}", None, 404),
        *("…", f"The Snapshot ({NOWHERE}) for Stack (complete) could not be found."),
    ),
    "an unknown type": ("GET", "/p/resource_types/Zz", None, 404, "…", "…"),
    "no such path": ("GET", "/p/zz", None, 404, "HTTPNotFound", "The resource could not be found."),
    "a slash at the end": ("GET", "/p/stacks/", None, 404, "HTTPNotFound", "…"),
    "the wrong method": ("PUT", "/p/stacks", {}, 405, "HTTPMethodNotAllowed", "…"),
    "an id that is none": ("GET", "/p/stacks/complete/'; DROP TABLE stack; --", None, 404, "…", "…"),
    "a filter that is SQL": ("GET", "{complete}/resources?name='%20OR%201=1&zz='", None, 400, "…", "…"),
    "a direction that is SQL": ("GET", "/p/stacks?sort_dir=asc;%20DROP%20TABLE%20stack", None, 400, "…", "…"),
    "a marker that is SQL": ("GET", "{complete}/why?marker=update.1.1;--", None, 400, "…", "…"),
    "a sequence that is SQL": ("GET", "{complete}/events?after=0.0'--", None, 400, "…", "…"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_in_heats_words_and_leaves_nothing(served: Served, case: str) -> None:
    method, path, body, status, kinds, messages = REFUSED[case]
    before = served.rows()
    additional = {} if body is None else {"json": body}
    refused = served.api.ask(method, path.format_map(served.places), status, **additional)
    if case != "signal to a stack that is suspended":  # this refusal writes an event
        assert served.rows() == before
    assert refused["code"] == status
    assert refused["explanation"] == EXPLANATIONS[status]
    error = refused["error"]
    assert error["traceback"] is None
    assert kinds == "…" or error["type"] in kinds.split("|")
    assert any(_like(error["message"], expected) for expected in messages.split("|")), error["message"]


def _like(message: str, expected: str) -> bool:
    return message.startswith(expected[:-1]) if expected.endswith("…") else message == expected


BODIES: dict[str, bytes] = {
    "nothing": b"",
    "cut off": b'{"stack_name": "s", "template": {',
    "two documents": b'{"stack_name": "s"}{"template": 1}',
    "no number": b'{"stack_name": "s", "template": NaN}',
    "infinity": b'{"stack_name": "s", "timeout_mins": Infinity}',
    "a huge number": b'{"stack_name": "s", "timeout_mins": ' + b"9" * 5_000 + b"}",
    "a huge exponent": b'{"stack_name": "s", "timeout_mins": 1e999999}',
    "bad UTF-8": b'{"stack_name": "\xff\xfe"}',
    "UTF-16": '{"stack_name": "s"}'.encode("utf-16"),
    "a byte order mark": b'\xef\xbb\xbf{"stack_name": "s"}',
    "half a character": b'{"stack_name": "s", "template": "\\ud800"}',
    "NUL in a key": b'{"stack_name": "s", "te\\u0000mplate": {}}',
    "NUL as a byte": b'{"stack_name": "s\x00"}',
    "a key twice": b'{"stack_name": "s", "stack_name": "1"}',
    "comments": b'{"stack_name": "s" /* , */}',
    "deep": deep(100_000).encode(),
    "deep, but of JSON's depth": deep(1_000).encode(),
    "a template that is deep": json.dumps(made(template="[" * 5_000)).encode(),
    "a list": b'[{"stack_name": "s"}]',
    "XML": b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>",
    "aliases that multiply": json.dumps(
        made(template="a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"{chr(98 + n)}: &{chr(98 + n)} [" + ",".join([f"*{chr(97 + n)}"] * 9) + "]\n" for n in range(9)
        ))
    ).encode(),
    "a type of Python": json.dumps(made(template="!!python/object/apply:os.system [id]")).encode(),
}  # fmt: skip


@pytest.mark.parametrize("case", BODIES)
@pytest.mark.parametrize("path", ["/p/stacks", "/p/validate"])
def test_invalid_requests_are_refused_quickly(served: Served, case: str, path: str) -> None:
    before = served.rows()
    refused = served.api.ask("POST", path, 400, data=BODIES[case], content_type="application/json")
    assert refused["error"]["message"]
    assert served.rows() == before


@pytest.mark.parametrize(
    "kind",
    [
        "application/xml",
        "text/html",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json-patch+json",
        "nonsense",
        "application/octet-stream",
    ],
)
def test_a_body_of_another_type_is_none(served: Served, kind: str) -> None:
    body = json.dumps(made()).encode()
    refused = served.api.ask("POST", "/p/stacks", 400, data=body, content_type=kind)
    assert refused["error"]["message"] == (
        f"No stack name specified. The request body was not read as JSON because its Content-Type is "
        f"{kind.partition(';')[0]}; "
        "send Content-Type: application/json."
    )


@pytest.mark.parametrize("given", ['{"signal', "[1", '{"a": NaN}', "{" * 10_000])
def test_small_bodies_are_looked_at_as_hard(served: Served, given: str) -> None:
    before = served.rows()
    for path in (
        "{complete}/resources/one/signal",
        "{live}/actions",
        "{live}/snapshots",
        "/p/software_configs",
    ):
        served.api.ask(
            "POST", path.format_map(served.places), 400, data=given, content_type="application/json"
        )
    assert served.rows() == before


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/x",
        "http://localhost:1/x",
        "http://2130706433/x",
        "http://0x7f.1/x",
        "http://[::1]/x",
        "http://[::ffff:169.254.169.254]/latest/meta-data",
        "http://169.254.169.254/latest/meta-data",
        "http://10.0.0.1/x",
        "http://user:password@127.0.0.1/x",
        "file:///etc/passwd",
        "ftp://example.org/x",
        "gopher://127.0.0.1:11211/x",
        "data:text/plain,heat_template_version: 2021-04-16",
        "http://",
        "//127.0.0.1/x",
        "http://127.0.0.1:99999/x",
        "http://a\r\nX-Injected: 1/x",
        "unix:///run/x.sock",
    ],
)
def test_an_address_that_is_not_public_is_not_fetched(served: Served, url: str) -> None:
    before = served.rows()
    refused = served.api.message("POST", "/p/stacks", 400, json={"stack_name": "s", "template_url": url})
    assert refused.startswith("Could not retrieve template: ")
    nested = made(template={**PLAIN, "resources": {"a": {"type": url if "/" in url else "x.yaml"}}})
    served.api.ask("POST", "/p/stacks", 400, json=nested)
    assert served.rows() == before


def test_a_redirect_to_the_full_path_keeps_verb_query_and_prefix(
    served: Served,
) -> None:
    place = served.places["complete"]
    for verb in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        moved = served.api.http.open("/v1/p/stacks/complete?a=1&b=%20", method=verb)
        assert (moved.status_code, moved.headers["Location"]) == (
            302,
            f"http://localhost/v1{place}?a=1&b=%20",
        )
    for keyword, read, posted in (("outputs", 404, 405), ("snapshots", 404, 405), ("export", 404, 405)):
        served.api.ask("GET", f"/p/stacks/complete/{keyword}", read)
        served.api.ask("POST", f"/p/stacks/complete/{keyword}", posted)


def test_headers_of_the_caller_are_not_forwarded(served: Served) -> None:
    """A forged host, id or prefix appears only in the links of the answer to its own request."""
    headers = {
        "X-Openstack-Request-Id": "req-x\tinjected",
        "X-Forwarded-Host": "evil.example",
        "X-Url-Scheme": "js",
    }
    answer = served.api.http.get("/v1" + served.places["complete"], headers=headers)
    assert answer.status_code == 200
    assert "evil.example" not in answer.text
    assert "injected" not in str(answer.headers)
