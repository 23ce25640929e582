"""`orchestrator key-pair …`: key pairs for the signatures of CloudFormation requests, on the server."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import click

from orchestrator.cli.audited import audited
from orchestrator.cli.commands.server import opened, validity, with_keys
from orchestrator.cli.lazy_group import LazyGroup
from orchestrator.cli.output.render import time
from orchestrator.cli.server_settings import data_dir_option, load_settings, one_line_failures
from orchestrator.errors import Misconfigured
from orchestrator.security import key_pairs
from orchestrator.security.encryption import cipher

# A role includes the roles below it.
ROLES = {"reader": ("reader",), "member": ("member", "reader")}


@click.group("key-pair", cls=LazyGroup, entries={})
def group() -> None:
    """Manage key pairs for signed CloudFormation requests."""


@group.command("create")
@click.option("--project", required=True, help="Project of the key pair.")
@click.option("--name", default="", help="Description.")
@click.option(
    "--role", type=click.Choice([*ROLES]), default="member", show_default=True, help="Role of its owner."
)
@click.option(
    "--expires",
    type=click.IntRange(1, 36_500),
    metavar="DAYS",
    help="Days until it expires.  [default: never]",
)
@data_dir_option
def create(project: str, name: str, role: str, expires: int | None, data_dir: Path | None) -> None:
    """Create a key pair; print it as variables for boto3.

    The secret is stored encrypted and printed only this once.
    """
    ends = dt.datetime.now(dt.UTC) + dt.timedelta(days=expires) if expires else None
    with one_line_failures():
        keys = cipher(with_keys(load_settings(data_dir=data_dir)))
    with opened(data_dir) as database, audited(database, "key_pair:create", project=project) as entry:
        key, secret = key_pairs.create_key_pair(
            database, keys, project, roles=ROLES[role], name=name, expires_at=ends
        )
        entry.target = f"{key} [{role}]"
    click.echo(f"export AWS_ACCESS_KEY_ID={key}\nexport AWS_SECRET_ACCESS_KEY={secret}")


@group.command("list")
@click.option("--project", help="Only key pairs of this project.")
@data_dir_option
def list_(project: str | None, data_dir: Path | None) -> None:
    """List the key pairs without their secrets."""
    with opened(data_dir) as database:
        rows = key_pairs.list_key_pairs(database, project)
    click.echo(f"{'ACCESS KEY':32}  {'PROJECT':24} {'ROLE':8} {'NAME':24} {'CREATED':25} STATE")
    now = dt.datetime.now(dt.UTC)
    for row in rows:
        state = "revoked" if row.revoked_at else validity(row.expires_at, now)
        click.echo(
            f"{row.key:32}  {row.project_id:24} {row.roles[0]:8} {row.name:24} "
            f"{time(row.created_at):25} {state}"
        )


@group.command("revoke")
@click.argument("access_key")
@data_dir_option
def revoke(access_key: str, data_dir: Path | None) -> None:
    """Revoke a key pair with immediate effect."""
    with opened(data_dir) as database:
        known = key_pairs.list_key_pairs(database)
        owner = next((row.project_id for row in known if row.key == access_key), None)
        with audited(database, "key_pair:revoke", project=owner, target=access_key):
            if not key_pairs.revoke_key_pair(database, access_key):
                raise Misconfigured(
                    f"no valid key pair has the access key {access_key}; see `orchestrator key-pair list`"
                )
    click.echo(f"key pair {access_key} revoked")
