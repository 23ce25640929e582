"""Key pairs, on the server: made, listed and revoked. With one a caller signs CloudFormation requests."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import click

from orchestrator.cli.commands.server import (
    data_dir_option,
    load_settings,
    one_line_failures,
    opened,
    validity,
    with_keys,
)
from orchestrator.errors import Misconfigured
from orchestrator.security import key_pairs
from orchestrator.security.encryption import cipher

# A role has what those below it have, too.
ROLES = {"reader": ("reader",), "member": ("member", "reader")}


@click.group("key-pair")
def group() -> None:
    """Key pairs with which callers sign requests in Amazon's way, as boto3 does."""


@group.command("create")
@click.option("--project", required=True, help="The project it opens.")
@click.option("--name", default="", help="What it is for.")
@click.option(
    "--role", type=click.Choice([*ROLES]), default="member", show_default=True, help="What it may do."
)
@click.option(
    "--expires", type=click.IntRange(1, 36_500), metavar="DAYS", help="Days it is valid.  [default: for ever]"
)
@data_dir_option
def create(project: str, name: str, role: str, expires: int | None, data_dir: Path | None) -> None:
    """Print a new key pair, as variables that boto3 and its like read.

    The secret is shown this once and stored encrypted.
    """
    ends = dt.datetime.now(dt.UTC) + dt.timedelta(days=expires) if expires else None
    with one_line_failures():
        sealing = cipher(with_keys(load_settings(data_dir=data_dir)))
    with opened(data_dir) as database:
        key, secret = key_pairs.create_key_pair(
            database, sealing, project, roles=ROLES[role], name=name, expires_at=ends
        )
    click.echo(f"export AWS_ACCESS_KEY_ID={key}\nexport AWS_SECRET_ACCESS_KEY={secret}")


@group.command("list")
@click.option("--project", help="Only this project's.")
@data_dir_option
def list_(project: str | None, data_dir: Path | None) -> None:
    """List the key pairs, never their secrets."""
    with opened(data_dir) as database:
        rows = key_pairs.list_key_pairs(database, project)
    click.echo(f"{'ACCESS KEY':32}  {'PROJECT':24} {'ROLE':8} {'NAME':24} {'CREATED':20} STATE")
    now = dt.datetime.now(dt.UTC)
    for row in rows:
        state = "revoked" if row.revoked_at else validity(row.expires_at, now)
        made = f"{row.created_at:%Y-%m-%d %H:%M:%S}"
        click.echo(f"{row.key:32}  {row.project_id:24} {row.roles[0]:8} {row.name:24} {made:20} {state}")


@group.command("revoke")
@click.argument("access_key")
@data_dir_option
def revoke(access_key: str, data_dir: Path | None) -> None:
    """Make the key pair with this access key useless from now on."""
    with opened(data_dir) as database:
        if not key_pairs.revoke_key_pair(database, access_key):
            raise Misconfigured(
                f"no valid key pair has the access key {access_key}; `orchestrator key-pair list` shows them"
            )
    click.echo(f"key pair {access_key} revoked")
