"""A broker that answers and accepts no messages counts as away, until it accepts them again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import kombu
import pytest
import redis

from orchestrator.embedded.valkey import connect
from tasks.broker_connections import install_transport
from tests.conftest import OwnServer
from tests.e2e.running import eventually, free_port


@contextmanager
def replica(client: redis.Redis) -> Iterator[None]:
    client.replicaof("127.0.0.1", str(free_port()))
    yield
    client.replicaof("NO", "ONE")


@contextmanager
def replica_without_its_primary(client: redis.Redis) -> Iterator[None]:
    client.config_set("replica-serve-stale-data", "no")
    with replica(client):
        yield


@contextmanager
def primary_without_replicas(client: redis.Redis) -> Iterator[None]:
    client.config_set("min-replicas-to-write", "1")
    yield
    client.config_set("min-replicas-to-write", "0")


@contextmanager
def password(client: redis.Redis) -> Iterator[None]:
    client.config_set("requirepass", "secret")
    yield
    client.config_set("requirepass", "")


@contextmanager
def busy(client: redis.Redis) -> Iterator[None]:
    client.config_set("busy-reply-threshold", "1")
    url = "unix://" + client.connection_pool.connection_kwargs["path"]

    def run() -> None:
        with redis.Redis.from_url(url) as other, suppress(redis.RedisError):
            other.eval("while true do end", 0)

    def is_busy() -> bool:
        try:
            client.ping()
        except redis.ResponseError:
            return True
        return False

    script = threading.Thread(target=run)
    script.start()
    eventually(is_busy)
    yield
    client.script_kill()
    script.join()


STATES = (replica, replica_without_its_primary, primary_without_replicas, password, busy)


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_a_broker_that_accepts_no_messages_counts_as_unreachable(
    own_valkey: OwnServer, state: Callable[[redis.Redis], Iterator[None]]
) -> None:
    install_transport()
    with connect(own_valkey.url) as client, kombu.Connection(own_valkey.url) as connection:
        with state(client), pytest.raises(connection.connection_errors):  # type: ignore[attr-defined]
            connection.channel()
        eventually(client.ping)
        connection.channel().close()
