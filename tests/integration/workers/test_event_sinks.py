"""Event sinks of environments that are webhooks: delivery, its first event, and their representation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import psycopg
import pytest

from orchestrator.config import Settings
from orchestrator.errors import InvalidTemplate, LimitExceeded
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.events.webhook_delivery import WebhookSender
from orchestrator.operations.stacks import actions, create_delete, update
from orchestrator.resources.registry import load_registry
from orchestrator.security.caller import Caller
from orchestrator.store.stacks import stacks as store
from orchestrator.store.stacks.stacks import StackRow
from tests.integration.api_world import Client, World
from tests.integration.api_world import root as root_of
from tests.integration.workers.test_webhooks import (
    PRIVATE,
    SECRET,
    Receiver,
    api,
    courier,
    project,
    receiver,
    work,
    world,
)

__all__ = ["api", "courier", "project", "receiver", "world"]

TEMPLATE = {"heat_template_version": "2021-04-16", "resources": {"one": {"type": "OS::Heat::None"}}}


@pytest.fixture
def context(world: World, project: str) -> OperationContext:
    who = Caller(project, "somebody", ("member",))
    return OperationContext(world.database, world.cipher, who, Settings(**PRIVATE), load_registry())


def body(*sinks: Any, **options: Any) -> Body:
    environment = {"event_sinks": list(sinks)} if sinks else {}
    requests = {"stack_name": "s", "template": TEMPLATE, "environment": environment, **options}
    return Body(orjson.dumps(requests))


def create(context: OperationContext, *sinks: Any) -> StackRow:
    made = create_delete.create(context, body(*sinks))
    return row(context, made.uuid)


def row(context: OperationContext, uuid: str) -> StackRow:
    result = store.get(context.database, context.caller.project_id, "s", uuid)
    assert result is not None
    return result


def sink(url: str, **options: Any) -> dict[str, Any]:
    return {"type": "webhook", "target": url, **options}


def delivered(receiver: Receiver) -> list[tuple[str, str]]:
    return [(e["stack_name"], e["resource_status_reason"]) for b in receiver.bodies for e in b["events"]]


def test_a_sink_gets_events_until_no_environment_names_it(
    api: Client, world: World, context: OperationContext, courier: WebhookSender, receiver: Receiver
) -> None:
    stack = create(context, sink(receiver.url, secret=SECRET))
    work(world, courier)
    assert delivered(receiver) == [("s", "Stack CREATE started")]
    update.update(context, stack, body(sink(receiver.url)))  # the same sink without its secret
    work(world, courier)
    assert delivered(receiver)[1:] == [("s", "Stack UPDATE started")]
    [observed] = api.get(f"{root_of(stack.project_id)}/webhooks")["webhooks"]
    assert (observed["event_sink"], observed["delivered"], observed["stack_name"]) == (True, 2, "s")
    update.update(context, stack, body())
    work(world, courier)
    assert len(delivered(receiver)) == 2
    assert api.get(f"{root_of(stack.project_id)}/webhooks") == {"webhooks": []}
    api.ask("POST", f"{root_of(stack.project_id)}/webhooks/{observed['id']}/rearm", 404)


def test_going_back_to_a_revision_is_telling_whom_it_named(
    world: World, context: OperationContext, courier: WebhookSender, receiver: Receiver
) -> None:
    stack = create(context, sink(receiver.url))
    update.update(context, stack, body())
    work(world, courier)
    assert delivered(receiver) == []  # it stood where it was made, and was off by then
    actions.roll_back(context, stack, 1)
    work(world, courier)
    assert delivered(receiver) == [("s", "Stack ROLLBACK started")]


def test_a_shown_sink_is_masked_and_can_be_sent_again(
    api: Client, world: World, context: OperationContext, courier: WebhookSender, receiver: Receiver
) -> None:
    stack = create(context, sink(receiver.url, secret=SECRET, events="stack"))
    path = f"{root_of(stack.project_id)}/stacks/s/{stack.uuid}/environment"
    shown = api.get(path)
    [item] = shown["event_sinks"]
    assert (item["type"], item["secret"], item["events"]) == ("webhook", "******", "stack")
    assert item["target"] == receiver.url.replace("token=hush", "******")
    with psycopg.connect(world.database.url) as db:
        rows = db.execute("SELECT environment::text, sealed FROM revision").fetchall()
    assert not any("hush" in text or SECRET in text for text, _ in rows)
    update.update(context, stack, body(item))
    work(world, courier)
    assert [reason for _, reason in delivered(receiver)] == ["Stack CREATE started", "Stack UPDATE started"]
    assert api.get(path)["event_sinks"] == [item]
    update.update(context, row(context, str(stack.uuid)), Body(b"{}"), patch=True)
    assert api.get(path)["event_sinks"] == [item]
    with pytest.raises(InvalidTemplate, match="may be masked"):
        create_delete.create(context, body(item, stack_name="t"))


def test_a_heat_event_sink_is_stored_and_gets_no_events(api: Client, context: OperationContext) -> None:
    queue = {"type": "zaqar-queue", "target": "news", "ttl": 60}
    stack = create(context, queue)
    path = f"{root_of(stack.project_id)}/stacks/s/{stack.uuid}/environment"
    assert api.get(path)["event_sinks"] == [queue]
    assert api.get(f"{root_of(stack.project_id)}/webhooks") == {"webhooks": []}


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        (sink("http://10.0.0.1/"), "event_sinks[0].target"),
        (sink("ftp://example.org/"), "event_sinks[0].target"),
        (sink("https://example.org/", secret="short"), "event_sinks[0].secret"),
    ],
)
def test_an_unsupported_sink_is_refused_at_once(context: OperationContext, wrong: Any, path: str) -> None:
    with pytest.raises(InvalidTemplate) as refused:
        create_delete.create(replace(context, settings=Settings()), body(wrong))
    assert [fault.path for fault in refused.value.diagnostics] == [path]
    assert store.find(context.database, context.caller.project_id, "s") is None


def test_sinks_are_webhooks_of_the_project_and_it_has_so_many(context: OperationContext) -> None:
    few = replace(context, settings=Settings(quotas={"webhooks": 1}, **PRIVATE))
    create(few, sink("https://example.org/1"))
    with pytest.raises(LimitExceeded, match="maximum webhooks per tenant, 1"):
        create_delete.create(few, body(sink("https://example.org/2"), stack_name="t"))
    assert store.find(context.database, context.caller.project_id, "t") is None
