"""The collation of the database: builtin everywhere, with a warning of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import yaml
from sqlalchemy import text

from api.app import create_app
from orchestrator.config import Settings
from orchestrator.embedded.postgres import Postgres
from orchestrator.security.encryption import new_key
from orchestrator.store.connections.database import Database
from orchestrator.store.schema import collation, migrate

COMPOSE = Path(__file__).parents[3] / "docker-compose.yml"
LIBC = "CREATE DATABASE sorted TEMPLATE template0 OWNER orchestrator LOCALE_PROVIDER libc LOCALE 'C'"


@pytest.fixture
def libc_url(postgres_server: Postgres) -> Iterator[str]:
    """A database with a collation of libc."""
    with psycopg.connect(postgres_server.administrator_url(), autocommit=True) as db:
        db.execute(LIBC)
        yield postgres_server.url("sorted")
        db.execute("DROP DATABASE sorted WITH (FORCE)")


def ready(url: str) -> dict[str, object]:
    settings = Settings(database_url=url, encryption_keys=new_key(), auth="none")
    database = Database(url)
    app = create_app(settings, database, publish=lambda _messages: None)
    body = app.test_client().get("/readyz", environ_base={"REMOTE_ADDR": "127.0.0.1"})
    database.engine.dispose()
    assert body.status_code == 200
    answer: dict[str, object] = body.get_json()
    return answer


def test_compose_and_up_use_the_same_collation(postgres_url: str) -> None:
    environment = yaml.safe_load(COMPOSE.read_text())["services"]["postgres"]["environment"]
    arguments = environment["POSTGRES_INITDB_ARGS"]
    assert arguments == "--encoding=UTF8 --locale=C --locale-provider=builtin --builtin-locale=C.UTF-8"
    database = Database(postgres_url)
    with database.engine.connect() as connection:
        assert collation.collation(connection) == collation.RECOMMENDED
        assert connection.execute(text("SELECT 'é' < 'z'")).scalar() is False
    database.engine.dispose()


def test_a_migration_warns_of_another_collation(
    libc_url: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []

    class Recorder:
        def warning(self, event: str, **values: str) -> None:
            warnings.append(f"{event} {values['collation']}")

    monkeypatch.setattr(collation, "logger", Recorder)
    migrate.upgrade(postgres_url)
    assert warnings == []
    migrate.upgrade(libc_url)
    assert warnings == ["collation_not_recommended libc C"]


def test_readiness_reports_the_collation_and_does_not_fail(
    libc_url: str, postgres_url: str, broker_url: str, new_database: Callable[[], str]
) -> None:
    migrate.upgrade(libc_url)
    answer = ready(libc_url)
    assert answer["status"] == "ok"
    database = answer["parts"]["database"]  # type: ignore[index]
    assert database["collation"] == "libc C"
    assert "instead of builtin C.UTF-8" in database["warning"]
    assert "warning" not in ready(postgres_url)["parts"]["database"]  # type: ignore[index]
