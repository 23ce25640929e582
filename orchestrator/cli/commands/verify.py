"""`orchestrator verify`: compare the recorded inputs of all resources with the present outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from orchestrator.cli.commands.server import opened
from orchestrator.cli.server_settings import data_dir_option
from orchestrator.store.maintenance.stale_inputs import stale_inputs

MAX_LINES: Final = 1_000


@click.command("verify")
@data_dir_option
def command(*, data_dir: Path | None) -> None:
    """Find resources built with former outputs.

    Reads all resources of COMPLETE stacks that have reached their revision, and changes nothing. Exit status
    1 if there are any: a plain update of the stack visits them. After a create, an update or a rollback there
    are none; a signal or a check may change an output until the next update.
    """
    count = 0
    with opened(data_dir) as database, database.connect() as db:
        for stale in stale_inputs(db):
            count += 1
            if count <= MAX_LINES:
                requirement = stale.requirement or "a deleted resource"
                click.echo(
                    f"{stale.project_id} {stale.stack_name} ({stale.stack_uuid}), {stale.action}_COMPLETE: "
                    f"{stale.resource} was built with a former output of {requirement}"
                )
    click.echo(f"{count} stale inputs")
    if count:
        raise SystemExit(1)
