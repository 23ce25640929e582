"""`orchestrator migrate`, `token …` and `rotate-keys`: operation of the server.

They use the database of ORCHESTRATOR_DATABASE_URL, otherwise the embedded database of the data directory,
which they start temporarily if no `orchestrator up` is running.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import click

from orchestrator.cli.audited import audited
from orchestrator.cli.lazy_group import LazyGroup
from orchestrator.cli.output.render import time
from orchestrator.cli.server_settings import data_dir_option, load_settings, one_line_failures
from orchestrator.config import Settings
from orchestrator.embedded.data_dir import DataDir
from orchestrator.embedded.process import running
from orchestrator.errors import Misconfigured
from orchestrator.operations.maintenance.rotate_keys import rotate_keys as reseal
from orchestrator.security import tokens
from orchestrator.security.caller import Caller
from orchestrator.security.encryption import cipher, new_key
from orchestrator.security.policy import IS_ADMIN, allowed, policy_of
from orchestrator.store.connections.database import Database
from orchestrator.store.schema import migrate as migrations
from orchestrator.store.schema import version


@contextlib.contextmanager
def database_of(settings: Settings) -> Iterator[str]:
    """Yield the URL of the database, which runs for the duration of the block."""
    if settings.database_url is not None:
        yield settings.database_url.get_secret_value()
        return
    if not (settings.data_dir / "lock").exists():
        raise Misconfigured(
            f"no data directory {settings.data_dir.absolute()}: select it with --data-dir, set "
            "ORCHESTRATOR_DATABASE_URL, or run `orchestrator up` first"
        )
    directory = DataDir(settings.data_dir)
    postgres = directory.postgres()
    if directory.in_use:
        yield postgres.url()
    else:
        with directory.lock(), running(postgres.child(), directory.logs / "postgres.log"):
            yield postgres.url()


def with_keys(settings: Settings) -> Settings:
    """Return the settings; without configured keys, with those of the data directory."""
    if settings.encryption_keys is not None or settings.database_url is not None:
        return settings
    keys = DataDir(settings.data_dir).keys_file().read_text()
    return load_settings(**{**settings.model_dump(exclude_unset=True), "encryption_keys": keys})


@click.command()
@data_dir_option
def migrate(data_dir: Path | None) -> None:
    """Migrate the database schema to this version."""
    with one_line_failures(), database_of(load_settings(data_dir=data_dir)) as url:
        before, needed = version.current(url), version.head()
        migrations.upgrade(url)
        if before != needed:
            # Not before the migration: it creates the table of the records.
            with _connected(url) as database, audited(database, "schema:migrate", project=None) as entry:
                entry.target = f"{before or 'nothing'} to {needed}"
    done = "nothing to do" if before == needed else f"upgraded from {before or 'nothing'}"
    click.echo(f"schema {needed}: {done}")


@click.group(cls=LazyGroup, entries={})
def token() -> None:
    """Manage API tokens (ORCHESTRATOR_AUTH=token)."""


@token.command("create")
@click.option("--project", required=True, help="Project of the token.")
@click.option("--name", default="", help="Description.")
@click.option(
    "--role",
    "roles",
    multiple=True,
    default=["member"],
    show_default=True,
    metavar="reader|member|admin",
    help="Role of its owner, or a role of the policy file; repeatable.",
)
@click.option(
    "--expires",
    type=click.IntRange(1, 36_500),
    metavar="DAYS",
    help="Days until it expires.  [default: never]",
)
@click.option(
    "--all-projects",
    is_flag=True,
    help="Confirm a role, such as admin, that reaches the stacks of all projects.",
)
@data_dir_option
def create(
    project: str,
    name: str,
    roles: tuple[str, ...],
    expires: int | None,
    data_dir: Path | None,
    *,
    all_projects: bool,
) -> None:
    """Create a token and print it.

    The token is stored hashed and printed only this once.
    """
    with one_line_failures():
        policy = policy_of(load_settings(data_dir=data_dir))
        reaches_all = allowed(policy, IS_ADMIN, Caller(project, name, roles))
        if reaches_all != all_projects:
            raise Misconfigured(
                f"the role {' or '.join(roles)} reaches the stacks of all projects, not only of {project}: "
                "confirm this with --all-projects, or use the role member"
                if reaches_all
                else "--all-projects requires the role admin: add --role admin"
            )
    ends = dt.datetime.now(dt.UTC) + dt.timedelta(days=expires) if expires else None
    with opened(data_dir) as database, audited(database, "token:create", project=project) as entry:
        entry.target = f"{name or '(unnamed)'} [{','.join(roles)}]"
        text = tokens.create_token(database, project, name, ends, roles)
    click.echo(text)


@token.command("list")
@click.option("--project", help="Only tokens of this project.")
@data_dir_option
def list_(project: str | None, data_dir: Path | None) -> None:
    """List the tokens without their text."""
    with opened(data_dir) as database:
        rows = tokens.list_tokens(database, project)
    click.echo(f"{'ID':>6}  {'PROJECT':24} {'NAME':24} {'ROLES':16} {'CREATED':25} STATE")
    now = dt.datetime.now(dt.UTC)
    for row in rows:
        state = "revoked" if row.revoked_at else validity(row.expires_at, now)
        click.echo(
            f"{row.id:>6}  {row.project_id:24} {row.name:24} {','.join(row.roles):16} "
            f"{time(row.created_at):25} {state}"
        )


@token.command("revoke")
@click.argument("token_id", type=int)
@data_dir_option
def revoke(token_id: int, data_dir: Path | None) -> None:
    """Revoke a token with immediate effect."""
    with opened(data_dir) as database:
        owner = next((row.project_id for row in tokens.list_tokens(database) if row.id == token_id), None)
        with audited(database, "token:revoke", project=owner, target=str(token_id)):
            if not tokens.revoke_token(database, token_id):
                raise Misconfigured(f"no valid token has the id {token_id}; see `orchestrator token list`")
    click.echo(f"token {token_id} revoked")


@click.command("rotate-keys")
@click.option("--new", is_flag=True, help="Print a new key and instructions; change nothing.")
@data_dir_option
def rotate_keys(new: bool, data_dir: Path | None) -> None:
    """Re-encrypt all secrets with the newest key.

    The newest key is the first in ORCHESTRATOR_ENCRYPTION_KEYS. Can be interrupted and repeated, also while
    the server runs.
    """
    if new:
        click.echo(new_key())
        click.echo(NEW_KEY_HELP, err=True)
        return
    with one_line_failures():
        settings = with_keys(load_settings(data_dir=data_dir))
        keys = cipher(settings)
    total = 0
    with opened(data_dir) as database, audited(database, "encryption_keys:rotate", project=None) as entry:
        for table, changed, unchanged in reseal(database, keys):
            total += changed
            entry.target = f"{total} values"
            click.echo(f"{table}: {changed} re-encrypted, {unchanged} already with the newest key")


NEW_KEY_HELP = """
1. Put this key before the old key, with a comma between them: ORCHESTRATOR_ENCRYPTION_KEYS=NEW,OLD
   (or in the file of ORCHESTRATOR_ENCRYPTION_KEYS_FILE; for `orchestrator up` it is DATA_DIR/keys).
2. Restart the API and the workers: they decrypt with both keys, and encrypt with the first.
3. Run `orchestrator rotate-keys`.
4. Remove the old key and restart again. Keep a copy as long as you keep older backups."""


@contextlib.contextmanager
def opened(data_dir: Path | None) -> Iterator[Database]:
    """Yield the database after a check of its schema."""
    with one_line_failures(), database_of(load_settings(data_dir=data_dir)) as url:
        version.require_current(url)
        with _connected(url) as database:
            yield database


@contextlib.contextmanager
def _connected(url: str) -> Iterator[Database]:
    database = Database(url, "orchestrator server command")
    try:
        yield database
    finally:
        database.engine.dispose()


def validity(expires_at: dt.datetime | None, now: dt.datetime) -> str:
    """Return the validity of a token or key pair that was not revoked."""
    if expires_at is None:
        return "valid"
    return "expired" if expires_at <= now else f"valid until {time(expires_at)}"
