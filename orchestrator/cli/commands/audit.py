"""`orchestrator audit list`: the audit records of the database."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.commands.server import opened
from orchestrator.cli.lazy_group import LazyGroup
from orchestrator.cli.output.render import time
from orchestrator.cli.server_settings import data_dir_option
from orchestrator.store.access import audit_records

UNKNOWN = "unknown"


@click.group("audit", cls=LazyGroup, entries={})
def group() -> None:
    """Show the audit records of the database."""


@group.command("list")
@click.option("--project", help="Only records of this project.")
@click.option(
    "--limit", type=click.IntRange(1, 1_000_000), default=100, show_default=True, help="Number of records."
)
@data_dir_option
def list_(project: str | None, limit: int, data_dir: Path | None) -> None:
    """List the last audit records, newest first.

    The records contain changes of tokens, key pairs, quotas and encryption keys by server commands, and with
    ORCHESTRATOR_AUDIT_REQUIRED changes by requests. The result is unknown if the process ended meanwhile.
    """
    with opened(data_dir) as database, database.connect() as db:
        rows = audit_records.list_recent(db, project, limit)
    click.echo(f"{'TIME':25} {'ACTION':24} {'PROJECT':16} {'USER':20} {'ORIGIN':20} {'RESULT':10} TARGET")
    for row in rows:
        click.echo(
            f"{time(row.created_at):25} {row.action:24} {row.project_id or '-':16} {row.user_name or '-':20} "
            f"{row.origin or '-':20} {row.result or UNKNOWN:10} {row.target or '-'}"
        )
