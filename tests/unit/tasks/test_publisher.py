"""Messages of the dispatcher against an in-process Redis server: queues, headers, reconnection."""

from __future__ import annotations

import base64
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import kombu
import orjson
import pytest
import redis
from celery import Celery
from fakeredis import TcpFakeServer

from orchestrator.config import Settings
from orchestrator.engine.messages import CheckMessage, Message, ObservationMessage, SignalMessage
from orchestrator.errors import Misconfigured
from tasks.broker_connections import BrokerConnections
from tasks.celery_settings import QUEUES, celery_settings
from tasks.fair_queues import KEY_PREFIX, LANES
from tasks.publisher import (
    MAX_TOGETHER,
    MIN_TOGETHER,
    OBSERVE_TASK,
    SIGNAL_TASK,
    TASK,
    Dispatcher,
    broker_url,
    describe,
)

ROOT = "6d9b4d2c-0000-4000-8000-000000000001"


class FakeBroker:
    """A Redis server in a thread, with a client to read its queues."""

    def __init__(self, port: int = 0) -> None:
        self.server = TcpFakeServer(("127.0.0.1", port), server_type="valkey")
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.client = redis.Redis(port=self.port)
        threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()
        for lane in set(LANES.values()):
            self.client.set(f"{KEY_PREFIX}capacity:{lane}", 100)  # no message waits

    def messages(self, queue: str, count: int) -> list[dict[str, Any]]:
        """Wait for `count` messages in a queue; return them in the order sent, bodies decoded."""
        deadline = time.monotonic() + 5
        while self.client.llen(queue) < count and time.monotonic() < deadline:
            time.sleep(0.005)
        result = [orjson.loads(raw) for raw in reversed(self.client.lrange(queue, 0, -1))]
        assert len(result) == count
        for message in result:
            message["body"] = orjson.loads(base64.b64decode(message["body"]))
        return result

    def close(self) -> None:
        """Stop the server and close its socket."""
        self.client.close()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    made = FakeBroker()
    yield made
    made.close()


def check(node_ids: list[int], traversal: int) -> None:
    """The task of a worker."""


def publish(broker: FakeBroker, messages: list[Message]) -> None:
    dispatcher = Dispatcher(broker.url)
    dispatcher.publish(messages, parent_id="parent")
    dispatcher.close()


def test_a_message_carries_the_node_and_its_traversal_as_arguments(broker: FakeBroker):
    publish(broker, [CheckMessage(7, 3, "check", "web", ROOT)])
    [message] = broker.messages("check", 1)
    assert message["body"][:2] == [[[7], 3], {}]


def test_headers_name_the_task_the_resource_and_the_root_stack(broker: FakeBroker):
    publish(broker, [CheckMessage(7, 3, "check", "web", ROOT)])
    headers = broker.messages("check", 1)[0]["headers"]
    assert (headers["task"], headers["root_id"], headers["parent_id"]) == (TASK, ROOT, "parent")
    assert (headers["argsrepr"], headers["kwargsrepr"]) == ("(web)", f"{{'root_stack': '{ROOT}'}}")


def test_a_message_without_a_root_is_its_own_root(broker: FakeBroker):
    publish(broker, [CheckMessage(7, 3, "check")])
    headers = broker.messages("check", 1)[0]["headers"]
    assert headers["root_id"] == headers["id"]
    assert headers["kwargsrepr"] == "{}"


@pytest.mark.parametrize("queue", ["check", "provider", "bulk"])
def test_a_rendered_message_equals_the_message_of_celery(broker: FakeBroker, queue: str):
    app = Celery("t", set_as_current=False)
    app.conf.update(celery_settings(broker.url))
    app.task(name=TASK, max_retries=2, shared=False)(check)
    publish(broker, [CheckMessage(7, 3, queue, "web", ROOT)])
    [own_items] = broker.messages(queue, 1)
    broker.client.delete(queue)
    app.tasks[TASK].apply_async(
        ([7], 3), queue=queue, root_id=ROOT, parent_id="parent", task_id=own_items["headers"]["id"]
    )
    [theirs] = broker.messages(queue, 1)
    app.close()
    for message in (own_items, theirs):
        for shown in ("argsrepr", "kwargsrepr"):  # ours are for readers of Flower
            del message["headers"][shown]
        message["headers"].pop("project", None)  # for the fair queues
        del message["properties"]["delivery_tag"]  # unique
        message["properties"].pop("reply_to", None)
    assert own_items == theirs


def test_each_message_has_an_id_of_its_own(broker: FakeBroker):
    publish(broker, [CheckMessage(n, 1, "check", f"n{n}", ROOT) for n in range(20)])
    messages = broker.messages("check", 20)
    assert len({message["headers"]["id"] for message in messages}) == 20
    assert len({message["properties"]["delivery_tag"] for message in messages}) == 20


def test_messages_of_a_publication_keep_their_order_and_queues(broker: FakeBroker):
    queues = ("check", "provider", "observe", "bulk")
    publish(broker, [CheckMessage(n, 1, queue) for n in range(3) for queue in queues])
    for queue in queues:
        assert [message["body"][0] for message in broker.messages(queue, 3)] == [[[n], 1] for n in range(3)]


def test_observations_with_the_same_list_share_a_message_of_the_queue_observe(broker: FakeBroker):
    def due(ids: range, shared_list: str, traversal: int = 1) -> list[Message]:
        return [CheckMessage(n, traversal, "provider", shared_list=shared_list) for n in ids]

    count = MAX_TOGETHER + 4
    few = due(range(200, 200 + MIN_TOGETHER - 1), "neutron/ports")
    publish(broker, [*due(range(count), "nova/servers"), *few, *due(range(300, 304), "nova/servers", 2)])
    together = [message["body"][0] for message in broker.messages("observe", 3)]
    assert together == [
        [list(range(MAX_TOGETHER)), 1],
        [list(range(MAX_TOGETHER, count)), 1],
        [[300, 301, 302, 303], 2],
    ]
    alone = [message["body"][0][0] for message in broker.messages("provider", len(few))]
    assert alone == [[200], [201]]


def test_a_signal_message_names_its_resource(broker: FakeBroker):
    publish(broker, [SignalMessage(9, "group", ROOT)])
    [message] = broker.messages("provider", 1)
    assert message["headers"]["task"] == SIGNAL_TASK
    assert message["headers"]["argsrepr"] == "(group)"
    assert message["body"][:2] == [[9], {}]


def test_an_observation_message_names_its_resource(broker: FakeBroker):
    publish(broker, [ObservationMessage(9, "server", ROOT)])
    [message] = broker.messages("observe", 1)
    assert message["headers"]["task"] == OBSERVE_TASK
    assert message["headers"]["argsrepr"] == "(server)"
    assert message["headers"]["root_id"] == ROOT
    assert message["body"][:2] == [[9], {}]


def test_no_message_opens_no_connection():
    Dispatcher("redis://127.0.0.1:1/0").publish([])


def test_an_unreachable_broker_raises_nothing():
    Dispatcher("redis://127.0.0.1:1/0").publish([CheckMessage(7, 3, "check")])


def test_the_first_message_after_a_restart_of_the_broker_arrives(broker: FakeBroker):
    dispatcher = Dispatcher(broker.url)
    dispatcher.publish([CheckMessage(1, 1, "check")])
    broker.messages("check", 1)
    with dispatcher._connections.lend() as connection:
        connection.redis._sock.shutdown(socket.SHUT_RDWR)  # the connection is lost
    dispatcher.publish([CheckMessage(2, 1, "check")])
    assert len(broker.messages("check", 2)) == 2
    dispatcher.close()


def test_threads_that_publish_at_the_same_time_have_connections_of_their_own(broker: FakeBroker):
    dispatcher = Dispatcher(broker.url)
    threads = [
        threading.Thread(target=dispatcher.publish, args=([CheckMessage(n, 1, "check")],)) for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = [message["body"][0][0][0] for message in broker.messages("check", 4)]
    assert sorted(ids) == [0, 1, 2, 3]
    with dispatcher._connections.lend() as one, dispatcher._connections.lend() as other:
        assert one is not other
    dispatcher.close()


def test_threads_that_send_one_after_the_other_share_a_connection(broker: FakeBroker):
    opened = []

    def connect() -> kombu.Connection:
        opened.append(kombu.Connection(broker.url))
        return opened[-1]

    def send() -> None:
        with connections.lend() as connection:
            connection.redis.send_command("RPUSH", "received", "x")

    connections = BrokerConnections(connect)
    for _ in range(3):
        thread = threading.Thread(target=send)
        thread.start()
        thread.join()
    assert len(opened) == 1
    assert [broker.client.blpop("received", timeout=5) for _ in range(3)] == [(b"received", b"x")] * 3
    with pytest.raises(ValueError, match="failed"), connections.lend():
        raise ValueError("failed")
    send()
    assert len(opened) == 2  # a connection is not used again after an error
    connections.close()


def test_arguments_name_five_resources_and_count_the_rest():
    assert describe([CheckMessage(n, 1, "check", f"n{n}") for n in range(5)]) == "(n0, n1, n2, n3, n4)"
    assert describe([CheckMessage(n, 1, "check", f"n{n}") for n in range(7)]) == (
        "(n0, n1, n2, n3, n4 and 2 more)"
    )


def test_a_missing_broker_is_reported_with_its_setting():
    with pytest.raises(Misconfigured, match="ORCHESTRATOR_BROKER_URL"):
        broker_url(Settings(broker_url=None))


# Broker settings.


def test_a_worker_takes_a_message_that_the_dispatcher_sent(broker: FakeBroker):
    app = Celery("t", set_as_current=False)
    app.conf.update(celery_settings(broker.url))
    publish(broker, [CheckMessage(7, 3, "check", "web", ROOT)])
    taken = []
    with app.connection_for_read() as connection:
        queue = next(queue for queue in app.conf.task_queues if queue.name == "check")
        with app.amqp.Consumer(connection, queues=[queue], no_ack=True, accept=["json"]) as consumer:
            consumer.register_callback(lambda body, message: taken.append(body))
            connection.drain_events(timeout=5)
    app.close()
    assert taken[0][0] == [[7], 3]


def test_a_queue_is_one_list_without_priorities(broker: FakeBroker):
    app = Celery("t", set_as_current=False)
    app.conf.update(celery_settings(broker.url))
    with app.connection_for_read() as connection:
        channel = connection.channel()
        assert channel.priority_steps == [0]
        assert not channel.ack_emulation
    app.close()


def test_events_are_off_and_nothing_is_stored_or_redelivered():
    chosen = celery_settings("redis://")
    assert [queue.name for queue in chosen["task_queues"]] == list(QUEUES)
    assert not chosen["worker_send_task_events"]
    assert chosen["result_backend"] is None
    assert chosen["task_ignore_result"]
    assert not chosen["task_reject_on_worker_lost"]
