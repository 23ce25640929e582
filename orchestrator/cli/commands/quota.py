"""`orchestrator quota …`: the limits of a project, on the server."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.audited import audited
from orchestrator.cli.commands.server import opened
from orchestrator.cli.lazy_group import LazyGroup
from orchestrator.cli.server_settings import data_dir_option, load_settings, one_line_failures
from orchestrator.errors import Misconfigured
from orchestrator.operations.quotas.limits import POSITIVE, QUOTAS, UNLIMITED, default
from orchestrator.store.access import quotas

DEFAULT = "default"


@click.group(cls=LazyGroup, entries={})
def group() -> None:
    """Manage the limits of projects."""


@group.command("show")
@click.option("--project", required=True, help="Project.")
@data_dir_option
def show(project: str, data_dir: Path | None) -> None:
    """Show the limits of a project, and those of the settings."""
    with one_line_failures():
        settings = load_settings(data_dir=data_dir)
    with opened(data_dir) as database, database.connect() as db:
        own = quotas.list_all(db, project)
    click.echo(f"{'QUOTA':24} {'MAXIMUM':>12} {'DEFAULT':>12}")
    for name in QUOTAS:
        usual = default(settings, name)
        click.echo(f"{name:24} {_shown(own.get(name, usual)):>12} {_shown(usual):>12}")


@group.command("set")
@click.option("--project", required=True, help="Project.")
@click.argument("limits", nargs=-1, required=True, metavar="NAME=MAXIMUM…")
@data_dir_option
def set_(project: str, limits: tuple[str, ...], data_dir: Path | None) -> None:
    """Set limits of a project.

    Rates, event streams and template sizes take effect within 10 seconds, other limits at once. MAXIMUM is a
    number, -1 for no limit, or `default` for the limit of the settings. Existing objects beyond a new limit
    are kept.
    """
    with one_line_failures():
        changes = dict(_change(text) for text in limits)
    with (
        opened(data_dir) as database,
        audited(database, "quota:set", project=project, target=" ".join(limits)),
        database.connect() as db,
        db.transaction(),
    ):
        for name, maximum in changes.items():
            if maximum is None:
                quotas.reset(db, project, name)
            else:
                quotas.set_maximum(db, project, name, maximum)
    for name, maximum in changes.items():
        click.echo(f"{project}: {name} {DEFAULT if maximum is None else _shown(maximum)}")


def _change(text: str) -> tuple[str, int | None]:
    """Return the name and the limit in `NAME=MAXIMUM`; None for the limit of the settings.

    Raises:
        Misconfigured: the text is not valid.
    """
    name, _, value = text.partition("=")
    if name not in QUOTAS:
        raise Misconfigured(f"no quota has the name {name!r}: use {', '.join(QUOTAS)}")
    if value == DEFAULT:
        return name, None
    try:
        maximum = int(value)
    except ValueError:
        maximum = UNLIMITED - 1
    if not UNLIMITED <= maximum < 1 << 63 or (maximum == 0 and name in POSITIVE):
        number = "a positive number" if name in POSITIVE else "a number"
        raise Misconfigured(f"{text!r}: the maximum of {name} is {number}, -1 for no limit, or {DEFAULT}")
    return name, maximum


def _shown(maximum: float) -> str:
    if maximum == UNLIMITED:
        return "unlimited"
    return str(int(maximum) if maximum == int(maximum) else maximum)
