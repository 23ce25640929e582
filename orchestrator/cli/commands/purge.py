"""`orchestrator purge`: forget now what is kept no longer, or only say how much that is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from orchestrator.cli.commands.server import data_dir_option, load_settings, one_line_failures, opened
from orchestrator.operations.maintenance.purge import Policy, count_purgeable, purge

SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


class Duration(click.ParamType[float]):
    """A number of seconds, or of what the letter after it says: s, m, h, d."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return seconds."""
        text = str(value)
        number, unit = (text[:-1], text[-1]) if text[-1:] in SECONDS else (text, "s")
        if not number.isdecimal():
            self.fail(f"{text!r} is no duration: write 90, 15m, 12h or 30d", param, ctx)
        return float(int(number) * SECONDS[unit])


@click.command("purge")
@click.option("--dry-run", is_flag=True, help="Say how much would go; change nothing.")
@click.option(
    "--deleted-after", type=Duration(), metavar="TIME", help="Forget stacks deleted this long ago (30d, 12h)."
)
@click.option("--events-after", type=Duration(), metavar="TIME", help="Forget events older than this.")
@click.option("--revisions", type=click.IntRange(0), metavar="N", help="Keep this many revisions of a stack.")
@click.option(
    "--revisions-after",
    type=Duration(),
    metavar="TIME",
    help="Keep revisions younger than this, however many.",
)
@click.option(
    "--nodes-after", type=Duration(), metavar="TIME", help="Forget how actions begun this long ago went."
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
    """Forget what is kept no longer: deleted stacks, old events and revisions, finished work.

    The server does so by itself, as its settings say, which are the defaults of the options. May be
    interrupted and run again, and run beside a working server. What a stack is, was last good as or has a
    snapshot of always stays.
    """
    with one_line_failures():
        settings = load_settings(data_dir=data_dir)
    given = {
        "deleted_seconds": deleted_after,
        "events_seconds": events_after,
        "revisions": revisions,
        "revisions_seconds": revisions_after,
        "nodes_seconds": nodes_after,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    policy = replace(Policy.of(settings), **chosen)  # type: ignore[arg-type]
    with opened(data_dir) as database, database.connect(hot=True, replan=True) as db:
        gone = count_purgeable(db, policy) if dry_run else purge(db, policy)
    for name, rows in sorted(gone.items()):
        click.echo(f"{name}: {rows} {'would go' if dry_run else 'gone'}")
    if not gone:
        click.echo("nothing to forget")
