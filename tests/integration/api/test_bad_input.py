"""Bad input as requests: malformed bodies, addresses and headers (docs/internals/rest-api.md §1, §2).

`test_refusals.py` covers the texts of refusals, `test_bad_input_http.py` malformed bytes,
`test_api_isolation.py` foreign ids, `tests/unit/clients/test_url_fetcher.py` addresses that must not be
fetched.
"""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import json

import pytest

from tests.integration.api.bad_input_world import PLAIN, Served, made, served  # noqa: F401 - fixtures


def deep(levels: int) -> str:
    return '{"stack_name": "s", "template": ' + "[" * levels + "]" * levels + "}"


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
def test_a_body_of_another_type_is_rejected(served: Served, kind: str) -> None:
    body = json.dumps(made()).encode()
    refused = served.api.ask("POST", "/p/stacks", 415, data=body, content_type=kind)
    assert refused["error"]["message"] == (
        "A request body requires the header Content-Type: application/json; "
        f"the Content-Type is {kind.partition(';')[0]}."
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
