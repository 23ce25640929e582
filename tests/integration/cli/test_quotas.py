"""`orchestrator quota`: limits of single projects."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pytest
from click.testing import CliRunner, Result

from orchestrator.cli.main import main
from orchestrator.config import Settings
from orchestrator.errors import LimitExceeded
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.stacks import create_delete
from orchestrator.resources.registry import load_registry
from orchestrator.security.caller import Caller
from orchestrator.security.encryption import Cipher, new_key
from orchestrator.store.connections.database import Database

TEMPLATE = {"heat_template_version": "2021-04-16", "resources": {"a": {"type": "OS::Heat::None"}}}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["quota", *arguments])


@pytest.fixture
def database(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    monkeypatch.setenv("ORCHESTRATOR_DATABASE_URL", postgres_url)
    database = Database(postgres_url, "tests")
    yield database
    database.engine.dispose()


def create(database: Database, project: str, name: str) -> None:
    caller, types = Caller(project, roles=("member",)), load_registry()
    context = OperationContext(database, Cipher([new_key()]), caller, Settings(), types)
    create_delete.create(context, Body(orjson.dumps({"stack_name": name, "template": TEMPLATE})))


def test_a_limit_of_a_project_takes_effect_at_once_and_for_no_other_project(database: Database) -> None:
    assert run("set", "--project", "shop", "stacks=1").exit_code == 0
    create(database, "shop", "first")
    with pytest.raises(LimitExceeded, match="You have reached the maximum stacks per tenant, 1"):
        create(database, "shop", "second")
    create(database, "other", "first")
    create(database, "other", "second")
    assert run("set", "--project", "shop", "stacks=default").exit_code == 0
    create(database, "shop", "second")


def test_the_limits_of_a_project_are_shown_beside_those_of_the_settings(database: Database) -> None:
    assert run("set", "--project", "shop", "stacks=7", "webhooks=-1").output.splitlines() == [
        "shop: stacks 7",
        "shop: webhooks unlimited",
    ]
    shown = {
        line.split()[0]: line.split()[1:] for line in run("show", "--project", "shop").output.splitlines()
    }
    assert shown["stacks"] == ["7", "100000"]
    assert shown["webhooks"] == ["unlimited", "100"]
    assert shown["snapshots_per_stack"] == ["1000", "1000"]


@pytest.mark.parametrize("text", ["stack=1", "stacks", "stacks=x", "stacks=-2", f"stacks={1 << 63}"])
def test_an_invalid_limit_changes_nothing_and_is_explained(database: Database, text: str) -> None:
    refused = run("set", "--project", "shop", "webhooks=1", text)
    assert refused.exit_code == 1
    assert "stacks" in refused.output
    with database.connect() as db:
        assert db.execute("SELECT count(*) FROM quota").fetchone() == (0,)
