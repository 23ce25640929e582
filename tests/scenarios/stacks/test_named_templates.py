"""Templates that are named by an address: of AWS::CloudFormation::Stack, of resources, of a stack itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson
import pytest

from orchestrator.errors import InvalidRequest, InvalidTemplate
from orchestrator.operations.context import Body
from orchestrator.operations.stacks import create_delete
from tests.scenarios.world import World

URL = "https://templates.example/inner.yaml"
INNER = """
heat_template_version: 2021-04-16
parameters:
  word: {type: string}
  secret: {type: string, default: none, hidden: true}
resources:
  inner:
    type: OS::Heat::TestResource
    properties: {value: {get_param: word}}
outputs:
  word: {value: {get_attr: [inner, output]}}
"""


class Site(ThreadingHTTPServer):
    """Serves texts by path, and counts how often."""

    daemon_threads = True
    texts: dict[str, str]
    requests: list[str]


class Pages(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        text = self.server.texts.get(self.path)
        self.send_response(404 if text is None else 200)
        self.end_headers()
        self.wfile.write((text or "").encode())

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def site() -> Iterator[Site]:
    server = Site(("127.0.0.1", 0), Pages)
    server.texts, server.requests = {"/inner.yaml": INNER}, []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def fetching(postgres_url: str) -> Iterator[World]:
    """A world that may fetch from this machine."""
    made = World(postgres_url, template_fetch_allow_private=True)
    yield made
    made.close()


def at(site: Site, path: str = "/inner.yaml") -> str:
    return f"http://127.0.0.1:{site.server_address[1]}{path}"


def stack(url: Any = URL, **parameters: Any) -> dict[str, Any]:
    return {
        "it": {
            "type": "AWS::CloudFormation::Stack",
            "properties": {"TemplateURL": url, "Parameters": {"word": "hello", **parameters}},
        }
    }


OUTPUTS = {
    "word": {"value": {"get_attr": ["it", "Outputs.word"]}},
    "arn": {"value": {"get_resource": "it"}},
}
FILES = {URL: INNER}
CHILDREN = "SELECT uuid::text, name, timeout_mins FROM stack WHERE owner_id IS NOT NULL"


def refusal(world: World, resources: Any, **options: Any) -> InvalidTemplate:
    with pytest.raises(InvalidTemplate) as caught:
        world.create("s", resources, **options)
    assert world.rows("SELECT 1 FROM stack") == []
    return caught.value


def test_it_is_made_changed_in_place_and_deleted(world):
    resources = stack()
    resources["it"]["properties"]["TimeoutInMinutes"] = 7
    uuid = world.create("s", resources, outputs=OUTPUTS, files=FILES)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    (child,) = world.rows(CHILDREN)
    assert world.outputs("s") == {
        "word": "hello",
        "arn": f"arn:openstack:heat::p1:stacks/{child.name}/{child.uuid}",
    }
    assert child.timeout_mins == 7
    world.update("s", stack(word="again"), outputs=OUTPUTS, files=FILES)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert world.outputs("s")["word"] == "again"
    assert [row.uuid for row in world.rows(CHILDREN)] == [child.uuid]
    world.delete("s")
    world.deliver_all()
    assert world.rows("SELECT 1 FROM resource") == []


def test_another_text_under_the_same_address_is_brought_to_the_child(world):
    uuid = world.create("s", stack(), outputs=OUTPUTS, files=FILES)
    world.deliver_all()
    changed = INNER.replace("{get_attr: [inner, output]}", "changed")
    world.update("s", stack(), outputs=OUTPUTS, files={URL: changed})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert world.outputs("s")["word"] == "changed"


def test_types_that_the_environment_maps_are_so_in_the_child_too(world):
    inner = INNER.replace("OS::Heat::TestResource", "My::Own")
    environment = {"resource_registry": {"My::Own": "OS::Heat::TestResource"}}
    uuid = world.create("s", stack(), files={URL: inner}, environment=environment)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"


@pytest.mark.parametrize(
    ("text", "parameters", "message", "path"),
    [
        (
            INNER.replace("OS::Heat::TestResource", "No::Such"),
            {},
            f"resources.it<{URL}>: The Resource Type (No::Such) could not be found.",
            f"resources.it<{URL}>.resources.inner.type",
        ),
        (
            INNER,
            {"wrd": "x"},
            "The Parameter (wrd) was not defined in template.",
            "resources.it.properties.Parameters.wrd",
        ),
        (
            INNER.replace("word: {type: string}", "word: {type: number}"),
            {},
            "Parameter 'word' is invalid",
            "resources.it.properties.Parameters.word",
        ),
        ("what is this", {}, "", ""),
    ],
)
def test_nested_faults_are_reported_before_anything_is_created(world, text, parameters, message, path):
    error = refusal(world, stack(**parameters), files={URL: text})
    assert message in str(error)
    assert path in error.diagnostics[0].path


def test_a_missing_parameter_is_reported_as_well(world):
    resources = stack()
    del resources["it"]["properties"]["Parameters"]
    assert "The Parameter (word) was not provided." in str(refusal(world, resources, files=FILES))


def test_a_template_that_includes_itself_is_refused(world):
    it = {"type": "AWS::CloudFormation::Stack", "properties": {"TemplateURL": URL}}
    inner = orjson.dumps({"heat_template_version": "2021-04-16", "resources": {"again": it}}).decode()
    error = refusal(world, {"it": it}, files={URL: inner})
    assert "Recursion depth exceeds 10." in str(error)


def test_an_attribute_that_is_no_output_is_refused(world):
    outputs = {"x": {"value": {"get_attr": ["it", "word"]}}}
    error = refusal(world, stack(), outputs=outputs, files=FILES)
    assert str(error).endswith("The Referenced Attribute (it word) is incorrect.")


def test_an_address_that_is_known_only_later_is_taken_from_the_files_or_not_at_all(world):
    late = {"v": {"type": "OS::Heat::Value", "properties": {"value": URL}}}
    resources = late | stack({"get_attr": ["v", "value"]})
    uuid = world.create("with", resources, outputs=OUTPUTS, files=FILES)
    world.deliver_all()
    assert (world.state(uuid), world.outputs("with")["word"]) == ("CREATE_COMPLETE", "hello")
    uuid = world.create("without", resources)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    (row,) = world.rows("SELECT status_reason FROM resource WHERE name = 'it' AND status = 'FAILED'")
    assert row.status_reason.startswith(f"ValueError: resources.it: Could not fetch remote template '{URL}'")


# Fetching.


def test_nothing_is_fetched_from_our_own_network(world, site):
    error = refusal(world, stack(at(site)))
    url = at(site)
    assert str(error) == f'Could not fetch remote template "{url}": Failed to retrieve template from {url}'
    assert error.diagnostics[0].hint == "its address is not a public one"
    assert site.requests == []


def test_fetched_files_are_stored_with_the_stack_and_not_fetched_again(fetching, site):
    uuid = fetching.create("s", {**stack(at(site)), "t": {"type": at(site), "properties": {"word": "too"}}})
    fetching.deliver_all()
    assert fetching.state(uuid) == "CREATE_COMPLETE"
    assert site.requests == ["/inner.yaml"]
    fetching.patch("s")
    fetching.deliver_all()
    assert fetching.state(uuid) == "UPDATE_COMPLETE"
    assert site.requests == ["/inner.yaml"]


def test_a_missing_template_is_refused_with_its_address(fetching, site):
    url = at(site, "/none.yaml")
    error = refusal(fetching, {"t": {"type": url}})
    assert str(error) == f'Could not fetch remote template "{url}": Failed to retrieve template from {url}'
    assert error.diagnostics[0].path == "resources.t.type"


def test_the_template_of_a_stack_is_fetched(fetching, site):
    site.texts["/s.yaml"] = INNER
    body = {"stack_name": "s", "template_url": at(site, "/s.yaml"), "parameters": {"word": "w"}}
    accepted = create_delete.create(fetching.context, Body(orjson.dumps(body)))
    fetching.messages += accepted.messages
    fetching.deliver_all()
    assert (fetching.state(accepted.uuid), fetching.outputs("s")) == ("CREATE_COMPLETE", {"word": "w"})


@pytest.mark.parametrize("url", ["ftp://x", "file:///etc/passwd", "http://127.0.0.1:9/none", 5])
def test_a_template_that_cannot_be_fetched_is_the_callers_fault(world, url):
    body = Body(orjson.dumps({"stack_name": "s", "template_url": url}))
    with pytest.raises(InvalidRequest) as caught:
        create_delete.create(world.context, body)
    assert caught.value.heat_type == "HTTPBadRequest"
    assert str(caught.value).startswith("Could not retrieve template: " if url != 5 else "'template_url'")
