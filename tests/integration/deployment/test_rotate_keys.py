"""`orchestrator rotate-keys`: afterwards everything sealed opens with the new key alone."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import psycopg
import pytest
from click.testing import CliRunner, Result

from orchestrator.cli.main import main
from orchestrator.errors import Misconfigured
from orchestrator.operations.maintenance import rotate_keys as rotation
from orchestrator.operations.maintenance.rotate_keys import rotate_keys
from orchestrator.security.encryption import Cipher, new_key
from orchestrator.store.connections.database import Database

OLD, NEW = new_key(), new_key()


@pytest.fixture
def sealed(postgres_url: str) -> str:
    """A database with sealed values of every kind, made under the old key."""
    old = Cipher([OLD])
    with psycopg.connect(postgres_url) as connection:
        (stack,) = connection.execute(
            """INSERT INTO stack (id, uuid, project_id, name, root_id, action, status, credentials)
               OVERRIDING SYSTEM VALUE
               VALUES (1, %s, 'demo', 's', 1, 'CREATE', 'COMPLETE', %s) RETURNING id""",
            (uuid.uuid4(), old.seal({"password": "p"})),
        ).fetchone() or (0,)
        connection.execute("INSERT INTO content (hash, body) VALUES (%s, '{}')", (b"h" * 32,))
        connection.execute(
            """INSERT INTO revision (stack_id, number, action, template_hash, outline, sealed, adopted)
               VALUES (%s, 1, 'ADOPT', %s, '{}', %s, %s)""",
            (stack, b"h" * 32, old.seal({"secret": "r"}), old.seal({"a": {"resource_id": "x"}})),
        )
        connection.execute(
            """WITH s AS (INSERT INTO snapshot (uuid, stack_id, status, status_reason, traversal, revision_id)
                   SELECT gen_random_uuid(), r.stack_id, 'COMPLETE', '', 1, r.id FROM revision r RETURNING id)
               INSERT INTO resource_snapshot (snapshot_id, name, type, token, action, status, sealed, kept)
               SELECT s.id, 'a', 't', 'k', 'CREATE', 'COMPLETE', %s, %s FROM s""",
            (old.seal({"data": {"value": "v"}}), old.seal({"image": "i"})),
        )
        connection.execute(
            "INSERT INTO signal (stack_id, resource_id, details) VALUES (%s, 1, %s)",
            (stack, old.seal({"status": "done"})),
        )
        connection.execute(
            """WITH c AS (INSERT INTO software_config (uuid, project_id, sealed)
                   VALUES (gen_random_uuid(), 'demo', %s) RETURNING id),
               d AS (INSERT INTO software_deployment (uuid, project_id, server_id, config_id, sealed)
                   SELECT gen_random_uuid(), 'demo', 'one', c.id, %s FROM c)
               INSERT INTO software_agent (uuid, project_id, sealed)
               VALUES (gen_random_uuid(), 'demo', %s)""",
            (old.seal({"config": "c"}), old.seal({"input_values": {}}), old.seal({"key": "k"})),
        )
        for number in range(7):
            connection.execute(
                "INSERT INTO resource (uuid, stack_id, name, type, sealed) VALUES (%s, %s, %s, 't', %s)",
                (uuid.uuid4(), stack, f"r{number}", old.seal({"n": number}) if number else None),
            )
    return postgres_url


def opened(url: str, *keys: str) -> list[object]:
    """Return every sealed value, opened with these keys."""
    cipher = Cipher(list(keys))
    query = """SELECT sealed FROM resource WHERE sealed IS NOT NULL UNION ALL SELECT sealed FROM revision
               UNION ALL SELECT adopted FROM revision UNION ALL SELECT details FROM signal
               UNION ALL SELECT sealed FROM resource_snapshot
               UNION ALL SELECT kept FROM resource_snapshot
               UNION ALL SELECT credentials FROM stack UNION ALL SELECT sealed FROM software_config
               UNION ALL SELECT sealed FROM software_deployment
               UNION ALL SELECT sealed FROM software_agent"""
    with psycopg.connect(url) as connection:
        return [cipher.open(row[0]) for row in connection.execute(query)]


@pytest.fixture
def command(sealed: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run the command with the new key before the old key."""
    monkeypatch.setenv("ORCHESTRATOR_DATABASE_URL", sealed)
    monkeypatch.setenv("ORCHESTRATOR_ENCRYPTION_KEYS", f"{NEW},{OLD}")
    return lambda *arguments: CliRunner().invoke(main, ["rotate-keys", *arguments])


def test_every_secret_opens_with_the_new_key_alone(sealed: str, command: Callable[..., Result]) -> None:
    before = opened(sealed, OLD)
    done = command()
    assert done.exit_code == 0, done.output
    assert "resource.sealed: 6 re-encrypted, 0 already" in done.output
    assert "revision.sealed: 1 re-encrypted" in done.output
    assert "stack.credentials: 1 re-encrypted" in done.output
    after = opened(sealed, NEW)
    assert sorted(map(str, after)) == sorted(map(str, before))
    assert len(after) == 15


def test_running_it_again_changes_nothing(command: Callable[..., Result]) -> None:
    command()
    assert "resource.sealed: 0 re-encrypted, 6 already with the newest key" in command().output


def test_slices_miss_nothing(sealed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "SLICE", 4)
    first, *_ = rotate_keys(Database(sealed), Cipher([NEW, OLD]))
    assert first == ("resource.sealed", 6, 0)
    assert len(opened(sealed, NEW)) == 15


def test_an_interrupted_run_is_taken_up_where_it_stopped(sealed: str) -> None:
    first = rotate_keys(Database(sealed), Cipher([NEW, OLD]))
    assert next(first) == ("resource.sealed", 6, 0)
    first.close()
    again = list(rotate_keys(Database(sealed), Cipher([NEW, OLD])))
    assert again == [
        ("resource.sealed", 0, 6),
        ("revision.sealed", 1, 0),
        ("signal.details", 1, 0),
        ("access.secret", 0, 0),
        ("key_pair.secret", 0, 0),
        ("revision.adopted", 1, 0),
        ("resource_snapshot.sealed", 1, 0),
        ("resource_snapshot.kept", 1, 0),
        ("stack.credentials", 1, 0),
        ("credential.sealed", 0, 0),
        ("stack_user.sealed", 0, 0),
        ("software_config.sealed", 1, 0),
        ("software_deployment.sealed", 1, 0),
        ("software_agent.sealed", 1, 0),
        ("webhook.sealed", 0, 0),
    ]


def test_concurrent_writes_are_neither_lost_nor_left_behind(sealed: str) -> None:
    class Interrupting(Cipher):
        """Another process seals a row under the old key between our reading and our writing."""

        done = False

        def rotate(self, sealed_value: bytes) -> bytes:
            if not self.done:
                self.done = True
                with psycopg.connect(sealed) as connection:
                    newer = Cipher([OLD]).seal({"n": "newer"})
                    connection.execute("UPDATE resource SET sealed = %s WHERE name = 'r3'", (newer,))
            return super().rotate(sealed_value)

    list(rotate_keys(Database(sealed), Interrupting([NEW, OLD])))
    values = opened(sealed, NEW)
    assert {"n": "newer"} in values
    assert {"n": 3} not in values


def test_a_value_of_a_lost_key_is_reported(sealed: str) -> None:
    with pytest.raises(Misconfigured, match="put the old key back"):
        list(rotate_keys(Database(sealed), Cipher([NEW])))


def test_a_new_key_is_printed_with_instructions_and_nothing_changes(
    sealed: str, command: Callable[..., Result]
) -> None:
    done = command("--new")
    Cipher([done.stdout.strip()])
    assert "before the old key" in done.stderr
    assert len(opened(sealed, OLD)) == 15
