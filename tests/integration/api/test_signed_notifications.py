"""Notifications that are signed like webhooks, from sources without a token."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import orjson
import pytest
from sqlalchemy import func, select

from orchestrator.clients.webhook_sender import signature
from orchestrator.store.tables.observation import ObservationNotice
from tests.integration.api_world import Client, World, api, project, root, world

__all__ = ["api", "project", "world"]

OBJECTS = {"objects": ["one-id"]}


class Source(NamedTuple):
    """A source with the secret of a webhook."""

    client: Client  # without credentials: they are required
    webhook: str
    secret: str
    path: str

    def headers(self, body: bytes, *, id_: str = "", at: float | None = None) -> dict[str, str]:
        """Return the headers of a signed message."""
        id_ = id_ or f"{self.webhook}.{time.monotonic_ns()}"
        timestamp = int(time.time() if at is None else at)
        return {
            "Content-Type": "application/json",
            "webhook-id": id_,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature(self.secret, id_, timestamp, body),
        }


@pytest.fixture
def source(api: Client, world: World, project: str) -> Source:
    world.resource(world.stack(project, "s"), "r", physical_id="one-id")
    return made(api, world, project)


def made(api: Client, world: World, project: str) -> Source:
    """Return a source with its own webhook."""
    webhook = api.ask("POST", f"{root(project)}/webhooks", 201, json={"url": "https://example.org/"})
    webhook = webhook.get("webhook", webhook)
    client = world.client(auth="token")
    return Source(client, webhook["id"], webhook["secret"], f"{root(project)}/observations")


def noted(world: World, project: str) -> int:
    with world.database.engine.connect() as connection:
        query = select(func.count()).where(ObservationNotice.project_id == project)
        return connection.execute(query).scalar_one()


def test_a_signed_notification_needs_no_token(source: Source, world: World, project: str) -> None:
    body = orjson.dumps(OBJECTS)
    source.client.ask("POST", source.path, 401, data=body, content_type="application/json")
    assert noted(world, project) == 0
    source.client.ask("POST", source.path, 202, data=body, headers=source.headers(body))
    assert noted(world, project) == 1


def test_a_signed_notification_of_an_unknown_object_leaves_no_trace(
    source: Source, world: World, project: str
) -> None:
    body = orjson.dumps({"objects": ["two-id"]})
    source.client.ask("POST", source.path, 202, data=body, headers=source.headers(body))
    assert noted(world, project) == 0


def test_one_of_several_signatures_suffices(source: Source) -> None:
    body = orjson.dumps(OBJECTS)
    headers = source.headers(body)
    headers["webhook-signature"] = f"v1,AAAA v2,BBBB {headers['webhook-signature']}"
    source.client.ask("POST", source.path, 202, data=body, headers=headers)


def test_a_message_is_accepted_once(source: Source) -> None:
    body = orjson.dumps(OBJECTS)
    headers = source.headers(body)
    source.client.ask("POST", source.path, 202, data=body, headers=headers)
    text = source.client.message("POST", source.path, 409, data=body, headers=headers)
    assert "was received before" in text


@pytest.mark.parametrize("seconds", [-301, 400])
def test_a_message_of_another_time_is_refused(source: Source, seconds: int) -> None:
    body = orjson.dumps(OBJECTS)
    headers = source.headers(body, at=time.time() + seconds)
    text = source.client.message("POST", source.path, 400, data=body, headers=headers)
    assert "expired or the request date is too far in the future" in text


def test_forgeries_get_the_same_answer_whatever_exists(
    source: Source, api: Client, world: World, project: str
) -> None:
    body, other = orjson.dumps(OBJECTS), orjson.dumps({"objects": ["two-id"]})
    strange = made(api, world, world.project())
    unknown = source._replace(webhook="00000000-0000-4000-8000-000000000000")
    answers = [
        source.client.message("POST", source.path, 403, data=data, headers=headers)
        for data, headers in (
            (other, source.headers(body)),
            (body, strange.headers(body)),
            (body, unknown.headers(body)),
            (body, source._replace(secret=strange.secret).headers(body)),
            (body, {**source.headers(body), "webhook-signature": "v1,ä"}),
        )
    ]
    assert len(set(answers)) == 1
    assert "signature" in answers[0]
    assert noted(world, project) == 0


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("webhook-id", ""),
        ("webhook-id", "1"),
        ("webhook-id", "00000000-0000-4000-8000-000000000000"),
        ("webhook-timestamp", ""),
        ("webhook-timestamp", "-1"),
        ("webhook-timestamp", "9" * 30),
        ("webhook-signature", "v1," + "A" * 1_000),
    ],
)
def test_malformed_headers_are_named(source: Source, header: str, value: str) -> None:
    body = orjson.dumps(OBJECTS)
    headers = {**source.headers(body), header: value}
    assert header in source.client.message("POST", source.path, 400, data=body, headers=headers)


@pytest.mark.parametrize("content", [{}, {"objects": [7]}, {"objects": ["a"], "project": "other"}])
def test_a_signature_does_not_make_a_malformed_body_valid(source: Source, content: Any) -> None:
    body = orjson.dumps(content)
    source.client.ask("POST", source.path, 400, data=body, headers=source.headers(body))


def test_an_oversized_body_is_refused_before_its_signature_is_verified(source: Source) -> None:
    body = orjson.dumps({"objects": ["x" * 2_000_000]})
    text = source.client.message("POST", source.path, 400, data=body, headers=source.headers(b""))
    assert "exceeded" in text


def test_a_deleted_webhook_signs_nothing(source: Source, api: Client, project: str) -> None:
    body = orjson.dumps(OBJECTS)
    api.ask("DELETE", f"{root(project)}/webhooks/{source.webhook}", 204)
    source.client.ask("POST", source.path, 403, data=body, headers=source.headers(body))


def test_a_signature_gives_no_other_access(source: Source) -> None:
    headers = source.headers(b"")
    source.client.ask("GET", source.path, 401, headers=headers)
    source.client.ask("GET", source.path.replace("observations", "stacks"), 401, headers=headers)
    wrong_token = {**source.headers(b"{}"), "X-Auth-Token": "nobody"}
    source.client.ask("POST", source.path, 401, data=b"{}", headers=wrong_token)
