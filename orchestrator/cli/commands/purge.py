"""`orchestrator purge`: delete expired data now, or count it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from orchestrator.cli.audited import audited
from orchestrator.cli.commands.server import opened
from orchestrator.cli.server_settings import data_dir_option, load_settings, one_line_failures
from orchestrator.operations.maintenance.purge import Policy, count_purgeable, purge

SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


class Duration(click.ParamType[float]):
    """A number of seconds, minutes, hours or days: 90, 15m, 12h, 30d."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return seconds."""
        text = str(value)
        number, unit = (text[:-1], text[-1]) if text[-1:] in SECONDS else (text, "s")
        if not number.isdecimal():
            self.fail(f"{text!r} is not a duration; examples: 90, 15m, 12h, 30d", param, ctx)
        return float(int(number) * SECONDS[unit])


@click.command("purge")
@click.option("--dry-run", is_flag=True, help="Count the data, and delete nothing.")
@click.option(
    "--deleted-after", type=Duration(), metavar="TIME", help="Stacks deleted longer ago (30d, 12h)."
)
@click.option("--events-after", type=Duration(), metavar="TIME", help="Events older than this.")
@click.option("--revisions", type=click.IntRange(0), metavar="N", help="Keep N revisions of each stack.")
@click.option(
    "--revisions-after",
    type=Duration(),
    metavar="TIME",
    help="Keep all revisions younger than this.",
)
@click.option(
    "--nodes-after", type=Duration(), metavar="TIME", help="Details of actions that started longer ago."
)
@data_dir_option
def command(
    *,
    dry_run: bool,
    deleted_after: float | None,
    events_after: float | None,
    revisions: int | None,
    revisions_after: float | None,
    nodes_after: float | None,
    data_dir: Path | None,
) -> None:
    """Delete expired stacks, events and revisions.

    The server does this regularly; its settings are the defaults of the options. Can be interrupted and
    repeated, also while the server runs. The desired and the last good revision of a stack are never deleted,
    nor revisions with snapshots.
    """
    with one_line_failures():
        settings = load_settings(data_dir=data_dir)
    request = {
        "deleted_seconds": deleted_after,
        "events_seconds": events_after,
        "revisions": revisions,
        "revisions_seconds": revisions_after,
        "nodes_seconds": nodes_after,
    }
    chosen = {name: value for name, value in request.items() if value is not None}
    policy = replace(Policy.of(settings), **chosen)  # type: ignore[arg-type]
    with opened(data_dir) as database, database.connect(hot=True, replan=True) as db:
        if dry_run:
            counts = count_purgeable(db, policy)
        else:
            with audited(database, "data:purge", project=None) as entry:
                counts = purge(db, policy)
                entry.target = (
                    ", ".join(f"{rows} {name}" for name, rows in sorted(counts.items())) or "nothing"
                )
    for name, rows in sorted(counts.items()):
        click.echo(f"{name}: {rows} {'to delete' if dry_run else 'deleted'}")
    if not counts:
        click.echo("nothing to delete")
