"""The operator's commands against their own database: `migrate`, `token` and `key-pair`."""

from __future__ import annotations

import datetime as dt
import os
import pwd
import socket
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner, Result

from orchestrator.cli.main import main
from orchestrator.embedded.postgres import Postgres
from orchestrator.security.encryption import Cipher, new_key
from orchestrator.security.key_pairs import create_key_pair, find_signer, list_key_pairs
from orchestrator.security.tokens import find_token, list_tokens
from orchestrator.store.access import audit_records, quotas
from orchestrator.store.connections.database import Database
from orchestrator.store.schema import version

STALE_RESOURCE = """
WITH s AS (
    INSERT INTO stack (id, root_id, uuid, project_id, name, action, status) OVERRIDING SYSTEM VALUE
    VALUES (7001, 7001, gen_random_uuid(), 'demo', 's', 'UPDATE', 'COMPLETE')
)
INSERT INTO resource (id, uuid, stack_id, name, type, action, status, requires, input_digests, value_digest)
OVERRIDING SYSTEM VALUE VALUES
    (7001, gen_random_uuid(), 7001, 'below', 'OS::Heat::Value', 'UPDATE', 'COMPLETE', '{}', '{}', 'new'),
    (7002, gen_random_uuid(), 7001, 'above', 'OS::Heat::Value', 'CREATE', 'COMPLETE', '{7001}', '{old}', 'v'),
    (7003, gen_random_uuid(), 7001, 'beside', 'OS::Heat::Value', 'CREATE', 'COMPLETE', '{7001}', '{new}', 'v')
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.fixture
def database(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setenv("ORCHESTRATOR_DATABASE_URL", postgres_url)
    return Database(postgres_url)


def test_an_empty_database_gets_the_schema(
    postgres_server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(postgres_server.administrator_url(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE untouched TEMPLATE template0 OWNER orchestrator")
    url = postgres_server.url("untouched")
    monkeypatch.setenv("ORCHESTRATOR_DATABASE_URL", url)
    refused = run("token", "list")
    assert refused.exit_code == 1
    assert "run `orchestrator migrate`" in refused.output
    assert f"schema {version.head()}: upgraded from nothing" in run("migrate").output
    assert f"schema {version.head()}: nothing to do" in run("migrate").output
    version.require_current(url)
    with psycopg.connect(url) as connection:
        records = audit_records.list_recent(connection, None, 7)
    assert [(record.action, record.target, record.result) for record in records] == [
        ("schema:migrate", f"nothing to {version.head()}", "done")
    ]


def test_a_token_is_shown_once_and_opens_its_project(database: Database) -> None:
    token = run("token", "create", "--project", "demo", "--name", "ci").stdout.strip()
    result = find_token(database, token)
    assert result is not None
    assert (result.project_id, result.name, result.expires_at) == ("demo", "ci", None)
    listed = run("token", "list").output
    assert "ci" in listed
    assert "valid" in listed
    assert token not in listed
    database.engine.dispose()


def test_a_token_ends_when_it_was_said_to(database: Database) -> None:
    run("token", "create", "--project", "demo", "--expires", "30")
    (row,) = list_tokens(database)
    assert row.expires_at is not None
    assert dt.timedelta(days=29) < row.expires_at - row.created_at <= dt.timedelta(days=30, seconds=1)
    assert "valid until" in run("token", "list", "--project", "demo").output
    assert "demo" not in run("token", "list", "--project", "other").output
    database.engine.dispose()


def test_a_revoked_token_opens_nothing(database: Database) -> None:
    token = run("token", "create", "--project", "demo").stdout.strip()
    (row,) = list_tokens(database)
    assert run("token", "revoke", str(row.id)).exit_code == 0
    assert find_token(database, token) is None
    assert "revoked" in run("token", "list").output
    again = run("token", "revoke", str(row.id))
    assert again.exit_code == 1
    assert f"no valid token has the id {row.id}" in again.output
    database.engine.dispose()


def test_a_token_for_all_projects_needs_a_confirmation(database: Database) -> None:
    admin = ("token", "create", "--project", "demo", "--role", "admin")
    refused = run(*admin)
    assert refused.exit_code == 1
    assert "the role admin reaches the stacks of all projects, not only of demo" in refused.output
    assert run("token", "create", "--project", "demo", "--all-projects").exit_code == 1
    assert list_tokens(database) == []
    assert run(*admin, "--all-projects").exit_code == 0
    (row,) = list_tokens(database)
    assert row.roles == ("admin",)
    database.engine.dispose()


def test_without_a_database_a_command_explains_the_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ORCHESTRATOR_DATABASE_URL", raising=False)
    refused = run("migrate", "--data-dir", str(tmp_path / "none"))
    assert refused.exit_code == 1
    assert "no data directory" in refused.output
    assert "--data-dir" in refused.output
    assert not (tmp_path / "none").exists()


def test_a_key_pair_is_shown_once_and_opens_its_project_until_it_is_revoked(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealing = new_key()
    monkeypatch.setenv("ORCHESTRATOR_ENCRYPTION_KEYS", sealing)
    made = run("key-pair", "create", "--project", "demo", "--name", "ci", "--role", "reader")
    supplied = dict(line.removeprefix("export ").split("=", 1) for line in made.stdout.splitlines())
    key, secret = supplied["AWS_ACCESS_KEY_ID"], supplied["AWS_SECRET_ACCESS_KEY"]
    result = find_signer(database, key)
    assert result is not None
    assert (result.project_id, result.name, result.roles) == ("demo", "ci", ("reader",))
    assert Cipher([sealing]).open(result.secret) == secret
    listed = run("key-pair", "list", "--project", "demo").output
    assert key in listed
    assert "valid" in listed
    assert secret not in listed
    assert key not in run("key-pair", "list", "--project", "other").output
    assert run("key-pair", "revoke", key).exit_code == 0
    assert find_signer(database, key) is None
    assert f"no valid key pair has the access key {key}" in run("key-pair", "revoke", key).output
    database.engine.dispose()


def test_a_key_pair_ends_when_it_was_said_to(database: Database) -> None:
    over = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=1)
    key, _ = create_key_pair(database, Cipher([new_key()]), "demo", roles=["member"], expires_at=over)
    assert find_signer(database, key) is None
    assert "expired" in run("key-pair", "list").output
    database.engine.dispose()


def test_changes_of_tokens_key_pairs_quotas_and_keys_leave_audit_records(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCHESTRATOR_ENCRYPTION_KEYS", new_key())
    monkeypatch.setenv("SUDO_USER", "ada")
    token = run("token", "create", "--project", "audited", "--name", "ci").stdout.strip()
    made = run("key-pair", "create", "--project", "audited").stdout.splitlines()
    key, secret = (line.split("=")[1] for line in made)
    run("key-pair", "revoke", key)
    run("quota", "set", "--project", "audited", "stacks=5")
    [row] = list_tokens(database, "audited")
    run("token", "revoke", str(row.id))
    assert run("token", "revoke", str(row.id)).exit_code == 1
    run("rotate-keys")
    run("purge", "--dry-run")
    run("purge")
    with database.connect() as db:
        records = audit_records.list_recent(db, None, 8)[::-1]
    user = f"os:{pwd.getpwuid(os.getuid()).pw_name} sudo:ada"
    assert {(record.user_name, record.origin) for record in records} == {(user, socket.gethostname())}
    assert [(record.action, record.project_id, record.target, record.result) for record in records] == [
        ("token:create", "audited", "ci [member]", "done"),
        ("key_pair:create", "audited", f"{key} [member]", "done"),
        ("key_pair:revoke", "audited", key, "done"),
        ("quota:set", "audited", "stacks=5", "done"),
        ("token:revoke", "audited", str(row.id), "done"),
        ("token:revoke", "audited", str(row.id), records[5].result),
        ("encryption_keys:rotate", None, "0 values", "done"),
        ("data:purge", None, records[7].target, "done"),
    ]
    assert (records[5].result or "").startswith("failed: no valid token has the id")
    listed = run("audit", "list", "--project", "audited", "--limit", "3").output
    assert [line.split()[1] for line in listed.splitlines()[1:]] == [
        "token:revoke",
        "token:revoke",
        "quota:set",
    ]
    assert token not in str(records)
    assert secret not in str(records)
    database.engine.dispose()


@pytest.mark.parametrize(
    "command", [("token", "create"), ("key-pair", "create"), ("quota", "set", "stacks=7")]
)
def test_a_command_whose_audit_record_cannot_be_written_changes_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("ORCHESTRATOR_ENCRYPTION_KEYS", new_key())
    with database.connect() as db:
        db.execute("ALTER TABLE audit_record RENAME TO audit_record_gone")
    try:
        refused = run(*command, "--project", "unaudited")
    finally:
        with database.connect() as db:
            db.execute("ALTER TABLE audit_record_gone RENAME TO audit_record")
    assert refused.exit_code == 1
    assert "the audit record cannot be written, so nothing was changed" in refused.output
    assert list_tokens(database, "unaudited") == []
    assert list_key_pairs(database, "unaudited") == []
    with database.connect() as db:
        assert quotas.list_all(db, "unaudited") == {}
    database.engine.dispose()


def test_stale_inputs_are_found(database: Database) -> None:
    assert "0 stale inputs" in run("verify").output
    with database.connect() as connection:
        connection.execute(STALE_RESOURCE)
    found = run("verify")
    assert found.exit_code == 1
    assert "above was built with a former output of below" in found.output
    assert "1 stale inputs" in found.output
    database.engine.dispose()
