"""Requests with client tokens: of two with the same token, exactly one is accepted, in any order."""

from __future__ import annotations

import threading
import uuid

import psycopg
import pytest

from orchestrator.store.access.idempotency import KEEP_SECONDS, ClientToken, TokenTaken, find, record

ASKED = ClientToken("token", b"digest")


@pytest.fixture
def project() -> str:
    return f"project {uuid.uuid4()}"


@pytest.mark.parametrize(("ends", "refused"), [("commit", [True]), ("rollback", [False])])
def test_of_two_at_once_the_second_waits_for_how_the_first_ends(
    postgres_url: str, project: str, ends: str, refused: list[bool]
) -> None:
    said: list[bool] = []

    def second() -> None:
        with psycopg.connect(postgres_url) as db:
            try:
                record(db, project, ASKED, uuid.uuid4(), "b")
                said.append(False)
            except TokenTaken:
                said.append(True)

    with psycopg.connect(postgres_url) as db:
        record(db, project, ASKED, uuid.uuid4(), "a")
        late = threading.Thread(target=second)
        late.start()
        getattr(db, ends)()
        late.join()
        result = find(db, project, ASKED.token)
    assert said == refused
    assert result is not None
    assert result.stack_name == ("a" if ends == "commit" else "b")


def test_tokens_are_each_projects_own_and_forgotten_after_a_day(postgres_url: str, project: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as db:
        record(db, project, ASKED, uuid.uuid4(), "a")
        record(db, f"{project}'s neighbour", ASKED, uuid.uuid4(), "b")
        db.execute(
            "UPDATE client_request SET created_at = now() - make_interval(secs => %s) WHERE project_id = %s",
            (KEEP_SECONDS + 1, project),
        )
        record(db, project, ASKED, uuid.uuid4(), "c")
        result = find(db, project, ASKED.token)
    assert result is not None
    assert result.stack_name == "c"
