"""Webhooks: requests of callers, and delivery of every event, in order, at least once."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import psycopg
import pytest

from orchestrator.config import Settings
from orchestrator.operations.events.webhook_delivery import WebhookSender
from orchestrator.operations.runtime.quarantine import Quarantine
from orchestrator.store.events import webhooks as store
from orchestrator.store.maintenance import quarantine
from tasks.webhook_delivery import WebhookDeliveryThread
from tests import constants
from tests.integration.api_world import Client, Made, World, project, world
from tests.integration.api_world import root as root_of
from tests.patience import took_at_most

__all__ = ["project", "world"]

PRIVATE = {"webhook_allow_private": True}
SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
SETTLE_SECONDS = 30.0
# The events that are not delivered yet, because an older transaction is open in any database.
UNSETTLED = "SELECT count(*) FROM event WHERE xid >= pg_snapshot_xmin(pg_current_snapshot())"


@dataclass
class Receiver:
    """A receiver of events: records requests, answers as configured."""

    url: str = ""
    came: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)  # of the next answers; then 204
    location: str = ""
    hangs: threading.Event = field(default_factory=threading.Event)  # set: answers are given

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.came]

    @property
    def names(self) -> list[str]:
        """Return the resources of the events that came, in the order they came."""
        return [event["resource_name"] for body in self.bodies for event in body["events"]]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    made.hangs.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.came.append(({name.lower(): value for name, value in self.headers.items()}, body))
            made.hangs.wait(10)
            self.send_response(made.statuses.pop(0) if made.statuses else 204)
            if made.location:
                self.send_header("Location", made.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_port}/hook?token=hush"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield made
    made.hangs.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def api(world: World) -> Client:
    return world.client(**PRIVATE)


@pytest.fixture
def courier(world: World) -> WebhookSender:
    """A sender that delivers on demand; webhooks of other tests are not delivered."""
    with psycopg.connect(world.database.url, autocommit=True) as db:
        db.execute("DELETE FROM webhook")
    constants.replace_for_test({"webhook_max_attempts": 3, "webhook_timeout": 1.0})
    return WebhookSender(
        world.database,
        world.cipher,
        Settings(**PRIVATE),
        Quarantine(world.database),
    )


def hook(api: Client, project: str, url: str, **options: Any) -> dict[str, Any]:
    made: dict[str, Any] = api.ask("POST", f"{root_of(project)}/webhooks", 201, json={"url": url, **options})
    return made["webhook"]


def shown(api: Client, project: str, made: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = api.get(f"{root_of(project)}/webhooks/{made['id']}")["webhook"]
    return body


def work(world: World, courier: WebhookSender, *, again: bool = False) -> int:
    """Ring and deliver once, as the sweep and a worker do; return to how many webhooks.

    `again`: as if the pause after a failure were over.
    """
    with psycopg.connect(world.database.url, autocommit=True) as db:
        if again:
            db.execute("UPDATE webhook SET due_at = now() WHERE due_at IS NOT NULL")
        await_settled(db)
        store.mark_due(db, None)
    claimed = claims(courier)
    for item, lease in claimed:
        courier.deliver_pending(item, lease)
    return len(claimed)


def await_settled(db: psycopg.Connection[Any], unsettled: int = 0) -> None:
    """Await the end of the transactions of other tests, so that only so many events are unsettled."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while db.execute(UNSETTLED).fetchone() != (unsettled,):
        assert time.monotonic() < deadline, "a transaction stays open"


def claims(courier: WebhookSender) -> list[Any]:
    """Claim the due webhooks."""
    return [*courier.claim(9, slow=False), *courier.claim(9, slow=True)]


def test_every_event_is_delivered_in_order_signed_and_once(
    api: Client, world: World, project: str, courier: WebhookSender, receiver: Receiver
) -> None:
    made = hook(api, project, receiver.url, secret=SECRET)
    stack, other = world.stack(project, "s"), world.stack(world.project(), "other")
    for name in "abc":
        world.event(stack, name)
        world.event(other, f"not-{name}")
    work(world, courier)
    work(world, courier)
    assert receiver.names == ["a", "b", "c"]
    [(headers, body)] = receiver.came
    id_, timestamp = headers["webhook-id"], headers["webhook-timestamp"]
    assert abs(int(timestamp) - time.time()) < 60
    digest = hmac.new(b"k" * 32, f"{id_}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    assert headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"
    event = receiver.bodies[0]["events"][0]
    assert (event["stack_name"], event["resource_status"]) == ("s", "CREATE_COMPLETE")
    assert receiver.bodies[0]["webhook_id"] == made["id"]
    now = shown(api, project, made)
    assert (now["delivered"], now["tries"], now["state"]) == (3, 0, "active")


def test_the_secret_and_the_query_of_a_url_are_shown_once_or_never(
    api: Client, world: World, project: str, receiver: Receiver
) -> None:
    made = hook(api, project, receiver.url)
    assert made["secret"].startswith("whsec_")
    now = shown(api, project, made)
    assert now["secret"] == "******"
    assert now["url"] == receiver.url.replace("token=hush", "******")
    with psycopg.connect(world.database.url) as db:
        [(row,)] = db.execute("SELECT w::text FROM webhook w WHERE uuid = %s", (made["id"],)).fetchall()
    assert "hush" not in row
    assert made["secret"].removeprefix("whsec_") not in row


def test_a_failing_webhook_is_retried_without_losses_and_then_disabled(
    api: Client, world: World, project: str, courier: WebhookSender, receiver: Receiver
) -> None:
    made, stack = hook(api, project, receiver.url), world.stack(project, "s")
    world.event(stack, "a")
    receiver.statuses = [500, 302, 500]
    receiver.location = "http://127.0.0.1:9/elsewhere"
    assert work(world, courier) == 1
    assert work(world, courier) == 0  # not before its pause is over
    now = shown(api, project, made)
    assert (now["tries"], now["last_error"], now["state"]) == (1, "it answered 500", "active")
    assert now["next_attempt_at"] is not None
    world.event(stack, "b")
    work(world, courier, again=True)
    work(world, courier, again=True)
    assert [item["id"] for item in api.get(f"{root_of(project)}/webhooks?state=dead")["webhooks"]] == [
        made["id"]
    ]
    assert work(world, courier, again=True) == 0
    receiver.came.clear()
    armed = api.ask("POST", f"{root_of(project)}/webhooks/{made['id']}/rearm", 200)["webhook"]
    assert (armed["state"], armed["tries"]) == ("active", 0)
    work(world, courier)
    assert receiver.names == ["a", "b"]


def test_a_webhook_that_has_hung_workers_is_dead_until_it_is_reactivated(
    api: Client, world: World, project: str, courier: WebhookSender, receiver: Receiver
) -> None:
    made, stack = hook(api, project, receiver.url), world.stack(project, "s")
    courier.quarantine.refresh_seconds = 0.0
    with psycopg.connect(world.database.url, autocommit=True) as db:
        [(id_,)] = db.execute("SELECT id FROM webhook").fetchall()
        for _ in range(2):
            quarantine.record(
                db, quarantine.Report("worker", "", [("webhook", id_)], certain=True, position="match")
            )
    world.event(stack, "a")
    work(world, courier)
    now = shown(api, project, made)
    assert (now["state"], receiver.names) == ("dead", [])
    assert "hung a worker 2 times, in match" in now["last_error"]
    api.ask("POST", f"{root_of(project)}/webhooks/{made['id']}/rearm", 200)
    work(world, courier)
    assert receiver.names == ["a"]


def test_a_webhook_of_a_stack_gets_its_events_and_those_of_its_descendants(
    api: Client, world: World, project: str, courier: WebhookSender, receiver: Receiver
) -> None:
    stack, sibling = world.stack(project, "s"), world.stack(project, "beside")
    child = world.stack(
        project, "s-c", root_id=stack.id, owner_id=stack.id, depth=1, parent_resource_id=stack.id
    )
    hook(api, project, receiver.url, stack="s", nested_depth=1, events="stack")
    for item in (stack, sibling, child):
        world.event(item, "resource")
        own = {"resource_type": "OS::Heat::Stack", "physical_id": str(item.uuid)}
        world.event(item, item.name, **own)
    work(world, courier)
    assert receiver.names == ["s", "s-c"]


def test_a_process_that_is_killed_leaves_its_webhook_to_the_next(
    api: Client, world: World, project: str, courier: WebhookSender, receiver: Receiver
) -> None:
    hook(api, project, receiver.url)
    world.event(world.stack(project, "s"), "a")
    with psycopg.connect(world.database.url, autocommit=True) as db:
        store.mark_due(db, None)
        [(claimed, lease)] = claims(courier)
        assert claims(courier) == []  # claimed by another sender
        db.execute("UPDATE webhook SET leased_until = now() - interval '1 s'")  # the sender has died
    work(world, courier)
    assert receiver.names == ["a"]
    # or it was only slow: its events arrive twice and advance nothing
    courier.deliver_pending(claimed, lease)
    assert receiver.names == ["a", "a"]
    assert work(world, courier) == 1
    assert receiver.names == ["a", "a"]


def test_only_whom_new_events_concern_is_rung_for(
    api: Client, world: World, project: str, courier: WebhookSender, receiver: Receiver
) -> None:
    elsewhere = world.project()
    hook(api, project, receiver.url)
    hook(api, elsewhere, receiver.url)
    with psycopg.connect(world.database.url, autocommit=True) as db:

        def ring(until: int | None, unsettled: int = 0) -> int | None:
            await_settled(db, unsettled)
            result = store.mark_due(db, until)
            for item, lease in claims(courier):
                courier.deliver_pending(item, lease)
            return result

        until = ring(None)
        assert until is not None
        world.event(world.stack(project, "s"), "a")
        until = ring(until)
        assert receiver.names == ["a"]
        assert db.execute("SELECT count(*) FROM webhook WHERE has_new_events").fetchone() == (0,)
        assert db.execute("SELECT count(*) FROM webhook WHERE due_at IS NULL").fetchone() == (2,)
        world.event(world.stack(elsewhere, "s"), "b")
        late = psycopg.connect(world.database.url)
        late.execute("SELECT pg_current_xact_id()")
        world.event(world.stack(elsewhere, "t"), "c")
        until = ring(until, unsettled=1)
        assert receiver.names == ["a", "b"]  # unsettled events are not delivered yet
        late.rollback()  # a connection that is closed is gone a little later
        late.close()
        ring(until)
        assert receiver.names == ["a", "b", "c"]


def test_a_hanging_receiver_delays_no_other_receiver(
    api: Client, world: World, project: str, courier: WebhookSender, receiver: Receiver
) -> None:
    """Ten receivers that never answer, and one that does: its events are delivered at once."""
    hook(api, project, receiver.url)
    stack = world.stack(project, "s")
    world.event(stack, "a")
    work(world, courier)
    silent = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)  # accepts no connection
    for _ in range(20):
        hook(api, project, f"http://127.0.0.1:{silent.server_port}/")
    constants.replace_for_test({"webhook_timeout": 10.0})
    patient = Settings(webhook_allow_private=True)
    couriers = WebhookDeliveryThread(
        WebhookSender(world.database, world.cipher, patient, Quarantine(world.database)), poll_seconds=0.02
    )
    couriers.start()
    try:
        with psycopg.connect(world.database.url, autocommit=True) as db:
            until = store.mark_due(db, None)
            for name in "bc":
                world.event(stack, name)
                began = time.monotonic()
                while name not in receiver.names:
                    until = store.mark_due(db, until)
                    assert took_at_most(began, 9)  # less than a timeout
                    time.sleep(0.02)
    finally:
        couriers.stop()
        silent.server_close()  # cuts off the waiting sender
    assert receiver.names == list("abc")


def test_a_webhook_is_tried_without_an_event(api: Client, project: str, receiver: Receiver) -> None:
    made = hook(api, project, receiver.url)
    place = f"{root_of(project)}/webhooks/{made['id']}/test"
    assert api.ask("POST", place, 200)["test"] == {"delivered": True, "status": 204, "error": None}
    assert receiver.bodies[0]["type"] == "test"
    receiver.statuses = [401]
    reported = api.ask("POST", place, 200)["test"]
    assert reported == {"delivered": False, "status": None, "error": "it answered 401"}
    assert shown(api, project, made)["tries"] == 0


def test_addresses_of_the_own_network_get_no_requests(world: World, project: str, receiver: Receiver) -> None:
    api = world.client()
    for address in (
        "http://127.0.0.1:1/",
        "http://[::1]/",
        "http://169.254.169.254/latest",
        "http://10.0.0.1/",
    ):
        body = api.ask("POST", f"{root_of(project)}/webhooks", 400, json={"url": address})
        assert "not a public one" in body["error"]["message"]
    made = hook(api, project, receiver.url.replace("127.0.0.1", "localhost"))  # a name is looked up each time
    reported = api.ask("POST", f"{root_of(project)}/webhooks/{made['id']}/test", 200)["test"]
    assert (reported["delivered"], reported["error"]) == (False, "its address is not a public one")
    assert receiver.came == []


def test_every_fault_is_reported_at_once(api: Client, project: str) -> None:
    requests = {
        "url": "ftp://example.org", "secret": "short", "nested_depth": -1, "events": "some", "after": "x",
        "colour": 1, "stack": 5,
    }  # fmt: skip
    error = api.ask("POST", f"{root_of(project)}/webhooks", 400, json=requests)["error"]
    assert {item["path"] for item in error["errors"]} == set(requests)
    assert error["type"] == "HTTPBadRequest"
    for url in ("https://user:pass@example.org/", "https://", "http://a b/", "javascript:x", 5, None):
        api.ask("POST", f"{root_of(project)}/webhooks", 400, json={"url": url})
    api.ask("POST", f"{root_of(project)}/webhooks", 404, json={"url": "https://example.org", "stack": "none"})


def test_projects_are_kept_apart(api: Client, world: World, project: str) -> None:
    made, other = hook(api, project, "https://example.org/x"), root_of(world.project())
    assert api.get(f"{other}/webhooks") == {"webhooks": []}
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/test"), ("POST", "/rearm")):
        message = api.message(method, f"{other}/webhooks/{made['id']}{path}", 404)
        assert message == f"The Webhook ({made['id']}) could not be found."
    api.ask("DELETE", f"{root_of(project)}/webhooks/{made['id']}", 204)
    api.get(f"{root_of(project)}/webhooks/{made['id']}", 404)
    api.get(f"{root_of(project)}/webhooks/none", 404)


def test_a_project_has_so_many(world: World, project: str) -> None:
    api = world.client(quotas={"webhooks": 2})
    made = [hook(api, project, f"https://example.org/{number}") for number in range(2)]
    message = api.message("POST", f"{root_of(project)}/webhooks", 400, json={"url": "https://example.org/3"})
    assert "maximum webhooks per tenant, 2" in message
    page = api.get(f"{root_of(project)}/webhooks?limit=1")["webhooks"]
    rest = api.get(f"{root_of(project)}/webhooks?marker={page[0]['id']}")["webhooks"]
    assert [item["id"] for item in page + rest] == [item["id"] for item in made]


def test_with_its_stack_a_webhook_goes(api: Client, world: World, project: str, receiver: Receiver) -> None:
    stack: Made = world.stack(project, "s")
    made = hook(api, project, receiver.url, stack=str(stack.uuid))
    with psycopg.connect(world.database.url, autocommit=True) as db:
        db.execute("DELETE FROM stack WHERE id = %s", (stack.id,))
    api.get(f"{root_of(project)}/webhooks/{made['id']}", 404)


def test_how_many_wait_and_how_long_is_a_figure(
    api: Client, world: World, project: str, courier: WebhookSender, receiver: Receiver
) -> None:
    def figures() -> dict[str, float]:
        text = world.client(**PRIVATE).http.get("/metrics").text  # an application keeps them for a moment
        lines = (line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("orchestrator_webhook"))
        return {name.removeprefix("orchestrator_webhook"): float(value) for name, value in lines}

    none = {
        's{state="dead"}': 0.0,
        's{state="due"}': 0.0,
        's{state="failing"}': 0.0,
        "_oldest_pending_seconds": 0.0,
    }
    assert figures() == none
    hook(api, project, receiver.url)
    world.event(world.stack(project, "s"), "a")
    receiver.statuses = [500] * 3
    observed = figures()
    assert (observed['s{state="due"}'], observed['s{state="failing"}']) == (1.0, 0.0)
    assert observed["_oldest_pending_seconds"] > 0
    work(world, courier)
    with psycopg.connect(world.database.url, autocommit=True) as db:
        db.execute("UPDATE webhook SET failing_since = failing_since - interval '1 hour'")
    observed = figures()
    assert observed['s{state="failing"}'] == 1.0
    assert 3600 < observed["_oldest_pending_seconds"] < 3700
    for _ in range(2):
        work(world, courier, again=True)
    assert figures() == {**none, 's{state="dead"}': 1.0}
