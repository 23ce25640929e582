"""A message we render is the message Celery would have sent."""

from __future__ import annotations

import base64

import orjson
import pytest
import redis
from celery import Celery

from orchestrator.embedded.valkey import connect
from orchestrator.engine.messages import CheckMessage, SignalMessage
from tasks.celery_settings import celery_settings
from tasks.fair_queues import KEY_PREFIX
from tasks.publisher import SIGNAL_TASK, TASK, Dispatcher
from tests.integration.cluster import eventually

RING = CheckMessage(7, 3, "check", "web", "6d9b4d2c-0000-4000-8000-000000000001")


def check(self, node_ids, traversal):
    """Never executed in this process."""


def signal(self, resource_id):
    """Nor this."""


@pytest.fixture
def app(broker_url: str):
    """An application with the task as workers have it."""
    made = Celery("t", set_as_current=False)
    made.conf.update(celery_settings(broker_url))
    made.task(name=TASK, bind=True, max_retries=2, shared=False)(check)
    yield made
    made.close()


def arrived(broker: redis.Redis, queue: str, count: int) -> list[bytes]:
    """Return the messages of a queue when they have arrived: the sender gets no confirmation."""
    eventually(lambda: broker.llen(queue) >= count, 5)
    messages: list[bytes] = broker.lrange(queue, 0, -1)
    assert len(messages) == count
    return messages


@pytest.fixture
def dispatcher_to():
    """Makes dispatchers, and closes them."""
    made: list[Dispatcher] = []

    def make(url: str) -> Dispatcher:
        made.append(Dispatcher(url))
        return made[-1]

    yield make
    for dispatcher in made:
        dispatcher.close()


def taken(broker: redis.Redis, queue: str) -> dict:
    """Return the only message of a queue, with a decoded body."""
    [raw] = arrived(broker, queue, 1)
    message = orjson.loads(raw)
    message["body"] = orjson.loads(base64.b64decode(message["body"]))
    return message


@pytest.mark.parametrize("queue", ["check", "provider", "bulk"])
def test_a_rendered_message_equals_that_of_apply_async(
    app: Celery, broker_url: str, broker: redis.Redis, queue: str, dispatcher_to
):
    check_message = CheckMessage(7, 3, queue, "web", RING.root)
    dispatcher_to(broker_url).publish([check_message], parent_id="parent-1")
    own_items = taken(broker, queue)
    broker.delete(queue)
    app.tasks[TASK].apply_async(
        ([7], 3),
        queue=queue,
        root_id=check_message.root,
        parent_id="parent-1",
        task_id=own_items["headers"]["id"],
    )
    theirs = taken(broker, queue)
    assert own_items["properties"].pop("delivery_tag") != theirs["properties"].pop("delivery_tag")
    assert own_items["headers"].pop("argsrepr") == "(web)"  # the two headers for Flower differ on purpose
    assert theirs["headers"].pop("argsrepr") == "([7], 3)"
    assert own_items["headers"].pop("kwargsrepr") == f"{{'root_stack': '{RING.root}'}}"
    assert theirs["headers"].pop("kwargsrepr") == "{}"
    for message in (own_items, theirs):
        message["properties"].pop("reply_to", None)  # no reply queue is used
        message["headers"].pop("project", None)  # for the fair queues
    assert own_items == theirs


def test_messages_are_sent_in_a_batch_per_queue_and_each_has_its_own_id(
    broker_url: str, broker: redis.Redis, dispatcher_to
):
    rings = [CheckMessage(i, 1, queue, f"n{i}") for i in range(50) for queue in ("check", "provider")]
    for lane in ("local", "provider"):
        broker.set(f"{KEY_PREFIX}capacity:{lane}", 100)  # no message waits
    dispatcher_to(broker_url).publish(rings)
    messages = [orjson.loads(raw) for queue in ("check", "provider") for raw in arrived(broker, queue, 50)]
    assert len(messages) == 100
    assert len({message["headers"]["id"] for message in messages}) == 100
    assert len({message["properties"]["delivery_tag"] for message in messages}) == 100


def test_an_unreachable_broker_is_not_the_callers_trouble(dispatcher_to):
    dispatcher_to("redis://127.0.0.1:1/0").publish([RING])


def test_a_broker_that_was_restarted_gets_the_very_next_message(own_valkey, dispatcher_to):
    dispatcher = dispatcher_to(own_valkey.url)
    dispatcher.publish([RING])
    own_valkey.kill()
    own_valkey.start()
    dispatcher.publish([RING])
    with connect(own_valkey.url) as broker:
        assert arrived(broker, "check", 1)


def test_a_signal_message_equals_that_of_apply_async(
    app: Celery, broker_url: str, broker: redis.Redis, dispatcher_to
):
    app.task(name=SIGNAL_TASK, bind=True, max_retries=2, shared=False)(signal)
    dispatcher_to(broker_url).publish([SignalMessage(7, "web", RING.root)], parent_id="parent-1")
    own_items = taken(broker, "provider")
    broker.delete("provider")
    app.tasks[SIGNAL_TASK].apply_async(
        (7,), queue="provider", root_id=RING.root, parent_id="parent-1", task_id=own_items["headers"]["id"]
    )
    theirs = taken(broker, "provider")
    assert own_items["properties"].pop("delivery_tag") != theirs["properties"].pop("delivery_tag")
    assert own_items["headers"].pop("argsrepr") == "(web)"  # the two headers for Flower differ on purpose
    assert theirs["headers"].pop("argsrepr") == "(7,)"
    assert own_items["headers"].pop("kwargsrepr") == f"{{'root_stack': '{RING.root}'}}"
    assert theirs["headers"].pop("kwargsrepr") == "{}"
    for message in (own_items, theirs):
        message["properties"].pop("reply_to", None)
        message["headers"].pop("project", None)
    assert own_items == theirs
