"""The migrations produce the declared tables, and no process works on a schema of another version."""

from __future__ import annotations

import importlib
import os
import pkgutil
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import NullPool, create_engine
from sqlalchemy.engine import make_url

from orchestrator.embedded.postgres import Postgres
from orchestrator.errors import Misconfigured
from orchestrator.store import tables
from orchestrator.store.schema import migrate
from orchestrator.store.schema import version as schema_version
from orchestrator.store.tables.base import Base

for _module in pkgutil.iter_modules(tables.__path__):  # importing a table declares it
    importlib.import_module(f"{tables.__name__}.{_module.name}")

# `pg_dump --schema-only` of a database at 0052 that the migrations before the baseline have made.
DUMPED = Path(__file__).with_name("schema_0052.sql")
CATALOGUE = """
SELECT 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
       concat_ws(' ', a.attnotnull, a.attidentity, a.attcompression, a.attstorage,
                 pg_get_expr(d.adbin, d.adrelid))
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT 'domain', t.typname, coalesce(n.conname, ''), format_type(t.typbasetype, t.typtypmod),
       concat_ws(' ', t.typnotnull, t.typdefault, pg_get_constraintdef(n.oid))
FROM pg_type t LEFT JOIN pg_constraint n ON n.contypid = t.oid
WHERE t.typnamespace = 'public'::regnamespace AND t.typtype = 'd'
UNION ALL
SELECT 'constraint', r.relname, n.conname, n.contype::text, pg_get_constraintdef(n.oid)
FROM pg_constraint n JOIN pg_class r ON r.oid = n.conrelid WHERE n.connamespace = 'public'::regnamespace
UNION ALL
SELECT 'index', tablename, indexname, '', indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL
SELECT 'storage', relname, relkind::text, '', array_to_string(reloptions, ' ')
FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
"""


def catalogue(url: str) -> set[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return {row for row in connection.execute(CATALOGUE) if row[1] != "alembic_version"}


def empty_database(server: Postgres, name: str) -> str:
    with psycopg.connect(server.administrator_url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 OWNER orchestrator")
    return server.url(name)


def stamp(url: str, version: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = %s", (version,))


def test_upgrading_from_empty_equals_the_models(postgres_server: Postgres, postgres_url: str) -> None:
    declared = empty_database(postgres_server, "declared")
    engine = create_engine(make_url(declared).set(drivername="postgresql+psycopg"), poolclass=NullPool)
    Base.metadata.create_all(engine)
    made, expected = catalogue(postgres_url), catalogue(declared)
    assert made - expected == set()
    assert expected - made == set()
    assert {"stack", "revision", "resource", "resource_definition", "graph_node", "event", "content"} <= {
        row[1] for row in made
    }


def test_a_database_of_the_former_migrations_is_upgraded_to_the_schema_of_a_new_installation(
    postgres_server: Postgres, postgres_url: str
) -> None:
    url = empty_database(postgres_server, "former")
    with psycopg.connect(url) as connection:
        connection.execute(DUMPED.read_text())
        connection.execute("INSERT INTO alembic_version VALUES ('0052')")
    migrate.upgrade(url)
    schema_version.require_current(url)
    assert catalogue(url) ^ catalogue(postgres_url) == set()


def test_the_baseline_is_the_schema_of_the_former_migrations(postgres_server: Postgres) -> None:
    dumped, baseline = empty_database(postgres_server, "dumped"), empty_database(postgres_server, "baseline")
    migration = runpy.run_path(str(next(schema_version.folder().glob("versions/0052_*.py"))))
    for url, schema in ((dumped, DUMPED.read_text()), (baseline, migration["SCHEMA"])):
        with psycopg.connect(url) as connection:
            connection.execute(schema)
    assert catalogue(dumped) ^ catalogue(baseline) == set()


def test_autogenerate_finds_nothing_to_add(postgres_url: str) -> None:
    engine = create_engine(make_url(postgres_url).set(drivername="postgresql+psycopg"), poolclass=NullPool)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_upgrading_twice_changes_nothing(postgres_url: str) -> None:
    before = catalogue(postgres_url)
    migrate.upgrade(postgres_url)
    assert catalogue(postgres_url) == before
    assert schema_version.current(postgres_url) == schema_version.head()


def test_the_current_schema_is_accepted(postgres_url: str) -> None:
    schema_version.require_current(postgres_url)


def test_a_database_without_a_schema_is_refused_with_the_command_to_run(postgres_server: Postgres) -> None:
    url = empty_database(postgres_server, "bare")
    with pytest.raises(Misconfigured, match=r"has no schema.*needs 0\d+.*run `orchestrator migrate`"):
        schema_version.require_current(url)


def test_an_older_schema_is_refused_with_the_command_to_run(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = schema_version.head()
    monkeypatch.setattr(schema_version, "head", lambda: "0999")
    with pytest.raises(Misconfigured, match=f"schema {older} and .* needs 0999: run `orchestrator migrate`"):
        schema_version.require_current(postgres_url)


@pytest.mark.parametrize("ask", [schema_version.require_current, migrate.upgrade])
def test_a_newer_schema_is_refused_and_names_both_versions(
    postgres_url: str, ask: Callable[[str], None]
) -> None:
    stamp(postgres_url, "9999")
    with pytest.raises(
        Misconfigured, match=f"schema 9999, newer than the {schema_version.head()} .*upgrade the software"
    ):
        ask(postgres_url)


@pytest.mark.parametrize("ask", [schema_version.require_current, migrate.upgrade])
def test_a_schema_before_the_baseline_is_refused_with_the_version_to_install_first(
    postgres_url: str, ask: Callable[[str], None]
) -> None:
    stamp(postgres_url, "0047")
    with pytest.raises(Misconfigured, match=r"schema 0047, .*0\.1\.0 with schema 0052, run its `orch"):
        ask(postgres_url)


def test_the_versions_equal_those_of_the_migrations() -> None:
    scripts = ScriptDirectory(str(schema_version.folder()))
    assert schema_version.versions() == [script.revision for script in scripts.walk_revisions()][::-1]
    assert schema_version.head() == scripts.get_current_head()


def test_a_starting_process_does_not_import_the_migrations() -> None:
    tells = "import sys, api.app, tasks.app; print('alembic' in sys.modules)"
    supplied = {**os.environ, "ORCHESTRATOR_BROKER_URL": "redis://127.0.0.1:1/0"}
    completed = subprocess.run(
        [sys.executable, "-c", tells], env=supplied, stdout=subprocess.PIPE, text=True, check=True
    )
    assert completed.stdout.strip() == "False"


def test_an_unreachable_database_is_named_in_a_single_line() -> None:
    with pytest.raises(Misconfigured, match=r"cannot reach the database: .*127\.0\.0\.1") as caught:
        schema_version.current("postgresql://nobody@127.0.0.1:1/none")
    assert "\n" not in str(caught.value)


def test_a_url_that_is_not_valid_is_refused_without_its_password() -> None:
    with pytest.raises(Misconfigured, match="is not a valid URL of PostgreSQL") as caught:
        schema_version.wait_for_current("postgresql://nobody:secret@127.0.0.1:1/none?nonsense=1")
    assert "secret" not in str(caught.value)


def test_an_upgrade_waits_no_longer_than_its_lock_timeout(
    postgres_server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = empty_database(postgres_server, "contended")
    monkeypatch.setattr(migrate, "LOCK_TIMEOUT", "100ms")
    with psycopg.connect(url) as other:
        # not committed: a second transaction that creates the same table waits
        other.execute("CREATE TABLE api_token (id int)")
        with pytest.raises(Misconfigured, match=r"did not finish, run it again: .*lock timeout"):
            migrate.upgrade(url)
        other.rollback()
    migrate.upgrade(url)
    schema_version.require_current(url)
