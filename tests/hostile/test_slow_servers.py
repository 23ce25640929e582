"""Servers that answer the API and its workers slowly: every exchange ends, and delays no other project."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg

from api.postponement import WAIT_SECONDS
from orchestrator.config import Settings
from orchestrator.operations.events.webhook_delivery import WebhookSender
from orchestrator.operations.runtime.quarantine import Quarantine
from orchestrator.security.encryption import new_key
from orchestrator.security.tokens import create_token
from orchestrator.store.connections.database import Database
from orchestrator.store.events import webhooks as store
from tasks.webhook_delivery import WebhookDeliveryThread
from tests import constants
from tests.hostile.slow import SlowClients, Victim, create, slow_server
from tests.integration.api_world import World, project, world
from tests.integration.served_api import served
from tests.integration.workers.test_webhooks import PRIVATE, Receiver, hook, receiver
from tests.patience import took_at_most

__all__ = ["project", "receiver", "world"]


def test_slow_template_servers_hold_no_request_longer_than_the_limit(
    new_database: Callable[[], str],
    valkey_server: object,
    broker_numbers: Iterator[int],
    tmp_path: Path,
) -> None:
    url = new_database()
    database = Database(url)
    attacker, victim = create_token(database, "attacker", "a"), create_token(database, "victim", "v")
    database.engine.dispose()
    settings = {
        "database_url": url,
        "broker_url": valkey_server.url(next(broker_numbers)),  # type: ignore[attr-defined]
        "encryption_keys": new_key(),
        "auth": "token",
        "template_fetch_allow_private": "true",
        "template_fetch_timeout": 2,
    }
    with served(settings, tmp_path / "log", threads=12) as port, slow_server() as slow:
        request = create(attacker, "attacker", {"stack_name": "s", "template_url": slow.url})
        caller = Victim(port, victim)
        caller.prepare()
        with SlowClients(port, request, drips=False) as clients:
            caller.work(6.0)
        caller.require_fast()
        assert slow.connections >= 6
        assert clients.statuses[400] >= 6  # the fetches failed
        assert clients.statuses[429] >= 6  # the project has half of the threads
        assert max(clients.seconds) < WAIT_SECONDS + 3  # without a thread, then the limit
        after = Victim(port, victim, caller.stack)
        after.work(1.0)
        after.require_fast()


def test_slow_receivers_of_a_project_delay_no_other_project(
    world: World, project: str, receiver: Receiver
) -> None:
    """Fifty receivers that answer slowly: some are known to be slow, some were fast until now."""
    api, other = world.client(**PRIVATE), world.project()
    with psycopg.connect(world.database.url, autocommit=True) as db, slow_server() as slow:
        db.execute("DELETE FROM webhook")
        for _ in range(50):
            hook(api, project, slow.url)
        db.execute("UPDATE webhook SET slow = id %% 2 = 0 WHERE project_id = %s", (project,))
        threads = _delivery(world, 10.0)
        try:
            _ring(world, db, project, "first")
            _await(lambda: slow.connections >= 8)
            hook(api, other, receiver.url)  # a new webhook counts as slow until it answers
            begun = time.monotonic()
            stack = world.stack(other, "s")
            for name in "ab":
                world.event(stack, name)
                until = store.mark_due(db, None)
                while name not in receiver.names:
                    until = store.mark_due(db, until)
                    assert took_at_most(begun, 8)  # less than the timeout
                    time.sleep(0.02)
        finally:
            threads.stop()
    assert receiver.names == ["a", "b"]


def test_a_slow_receiver_is_given_up_in_time(world: World, project: str) -> None:
    """The head of its response takes longer than the timeout, byte by byte."""
    api = world.client(**PRIVATE, webhook_timeout=1.0)
    with slow_server() as slow:
        made = hook(api, project, slow.url)
        begun = time.monotonic()
        result = api.ask("POST", f"/{project}/webhooks/{made['id']}/test".replace(" ", "%20"), 200)["test"]
    assert took_at_most(begun, 5)
    assert result == {"delivered": False, "status": None, "error": "it did not answer within 1 seconds"}


def _delivery(world: World, timeout: float) -> WebhookDeliveryThread:
    constants.replace_for_test({"webhook_timeout": timeout})
    settings = Settings(webhook_allow_private=True)
    made = WebhookDeliveryThread(
        WebhookSender(world.database, world.cipher, settings, Quarantine(world.database)), poll_seconds=0.02
    )
    made.start()
    return made


def _ring(world: World, db: psycopg.Connection, project: str, name: str) -> None:
    world.event(world.stack(project, name), name)
    store.mark_due(db, None)


def _await(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)
