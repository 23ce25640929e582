"""Run migrations on the given connection; the `alembic` command uses ORCHESTRATOR_DATABASE_URL."""

from typing import Any, Literal

from alembic import context
from sqlalchemy import Connection

from orchestrator.config import Settings
from orchestrator.store.schema.migrate import connect
from orchestrator.store.tables import (
    access,
    events,
    graph,
    keystone,
    observation,
    observation_rules,
    providers,
    repairs,
    snapshots,
    software,
    stacks,
    workers,
)
from orchestrator.store.tables.base import Base, Xid8


def render(kind: str, item: object, autogen: Any) -> str | Literal[False]:
    """Render our own types by name."""
    if kind == "type" and isinstance(item, Xid8):
        autogen.imports.add("from orchestrator.store.tables.base import Xid8")
        return "Xid8()"
    return False


def run(connection: Connection) -> None:
    """Run each migration in its own transaction, so that it may build an index concurrently."""
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        transaction_per_migration=True,
        render_item=render,
    )
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    url = Settings().database_url
    if url is None:
        raise SystemExit("set ORCHESTRATOR_DATABASE_URL")
    with connect(url.get_secret_value()) as own:
        run(own)
