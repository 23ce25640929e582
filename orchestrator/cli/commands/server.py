"""Commands for the operator, on the server: `migrate`, `token`, `rotate-keys`.

They speak to the database: the one of ORCHESTRATOR_DATABASE_URL, else the embedded one of the data folder,
which is started for the duration when no `orchestrator up` runs it.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError
from pydantic_settings import SettingsError

from orchestrator.cli.exit_codes import Failure
from orchestrator.config import Settings
from orchestrator.embedded.data_dir import DataDir
from orchestrator.embedded.process import running
from orchestrator.errors import Misconfigured, OrchestratorError
from orchestrator.operations.maintenance.rotate_keys import rotate_keys as reseal
from orchestrator.security import tokens
from orchestrator.security.encryption import cipher, new_key
from orchestrator.store.connections.database import Database
from orchestrator.store.schema import migrate as migrations
from orchestrator.store.schema import version

Command = Callable[..., Any]


def data_dir_option(command: Command) -> Command:
    """Add `--data-dir`."""
    return click.option(
        "--data-dir",
        type=click.Path(file_okay=False, path_type=Path),
        help="Folder of the embedded servers.  [default: .orchestrator]",
    )(command)


@contextlib.contextmanager
def one_line_failures() -> Iterator[None]:
    """Turn what the operator must act on into one clear line and exit status 1."""
    try:
        yield
    except OrchestratorError as error:
        first, *rest = str(error).splitlines()
        raise Failure(first, details=rest) from error


def load_settings(**given: object) -> Settings:
    """Return the settings, options given on the command line first.

    Raises:
        Misconfigured: a value is not possible; names the variable.
    """
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        name = "_".join(str(part) for part in fault["loc"]).upper()
        raise Misconfigured(f"ORCHESTRATOR_{name}: {fault['msg']}") from error
    except (SettingsError, OSError) as error:
        raise Misconfigured(f"a setting cannot be read: {error}") from error


@contextlib.contextmanager
def database_of(settings: Settings) -> Iterator[str]:
    """Yield the URL of the installation's database, running for the duration of the block."""
    if settings.database_url is not None:
        yield settings.database_url.get_secret_value()
        return
    if not (settings.data_dir / "lock").exists():
        raise Misconfigured(
            f"no installation in {settings.data_dir.absolute()}: name it with --data-dir, set "
            "ORCHESTRATOR_DATABASE_URL, or run `orchestrator up` first"
        )
    folder = DataDir(settings.data_dir)
    postgres = folder.postgres()
    if folder.in_use:
        yield postgres.url()
    else:
        with folder.lock(), running(postgres.child(), folder.logs / "postgres.log"):
            yield postgres.url()


def with_keys(settings: Settings) -> Settings:
    """Return the settings with the keys of the data folder when none are configured."""
    if settings.encryption_keys is not None or settings.database_url is not None:
        return settings
    keys = DataDir(settings.data_dir).keys_file().read_text()
    return load_settings(**{**settings.model_dump(exclude_unset=True), "encryption_keys": keys})


@click.command()
@data_dir_option
def migrate(data_dir: Path | None) -> None:
    """Bring the database to the schema of this version."""
    with one_line_failures():
        with database_of(load_settings(data_dir=data_dir)) as url:
            before = version.current(url)
            migrations.upgrade(url)
        needed = version.head()
    done = "nothing to do" if before == needed else f"upgraded from {before or 'nothing'}"
    click.echo(f"schema {needed}: {done}")


@click.group()
def token() -> None:
    """Tokens with which callers say who they are (ORCHESTRATOR_AUTH=token)."""


@token.command("create")
@click.option("--project", required=True, help="The project it opens.")
@click.option("--name", default="", help="What it is for.")
@click.option(
    "--role",
    "roles",
    multiple=True,
    default=["member"],
    show_default=True,
    metavar="reader|member|admin",
    help="What it may do; another where a policy file names it.",
)
@click.option(
    "--expires", type=click.IntRange(1, 36_500), metavar="DAYS", help="Days it is valid.  [default: for ever]"
)
@data_dir_option
def create(
    project: str, name: str, roles: tuple[str, ...], expires: int | None, data_dir: Path | None
) -> None:
    """Print a new token; it is shown this once and stored hashed."""
    ends = dt.datetime.now(dt.UTC) + dt.timedelta(days=expires) if expires else None
    with opened(data_dir) as database:
        click.echo(tokens.create_token(database, project, name, ends, roles))


@token.command("list")
@click.option("--project", help="Only this project's.")
@data_dir_option
def list_(project: str | None, data_dir: Path | None) -> None:
    """List the tokens, never their text."""
    with opened(data_dir) as database:
        rows = tokens.list_tokens(database, project)
    click.echo(f"{'ID':>6}  {'PROJECT':24} {'NAME':24} {'ROLES':16} {'CREATED':20} STATE")
    now = dt.datetime.now(dt.UTC)
    for row in rows:
        state = "revoked" if row.revoked_at else validity(row.expires_at, now)
        click.echo(
            f"{row.id:>6}  {row.project_id:24} {row.name:24} {','.join(row.roles):16} "
            f"{row.created_at:%Y-%m-%d %H:%M:%S}  {state}"
        )


@token.command("revoke")
@click.argument("token_id", type=int)
@data_dir_option
def revoke(token_id: int, data_dir: Path | None) -> None:
    """Make the token with this id useless from now on."""
    with opened(data_dir) as database:
        if not tokens.revoke_token(database, token_id):
            raise Misconfigured(f"no valid token has the id {token_id}; `orchestrator token list` shows them")
    click.echo(f"token {token_id} revoked")


@click.command("rotate-keys")
@click.option("--new", is_flag=True, help="Print a fresh key and what to do with it; change nothing.")
@data_dir_option
def rotate_keys(new: bool, data_dir: Path | None) -> None:
    """Encrypt everything again with the first key of ORCHESTRATOR_ENCRYPTION_KEYS.

    May be interrupted and run again, and run beside a working server.
    """
    if new:
        click.echo(new_key())
        click.echo(NEW_KEY_HELP, err=True)
        return
    with one_line_failures():
        settings = with_keys(load_settings(data_dir=data_dir))
        sealing = cipher(settings)
    with opened(data_dir) as database:
        for what, changed, left in reseal(database, sealing):
            click.echo(f"{what}: {changed} encrypted again, {left} already with the first key")


NEW_KEY_HELP = """
1. Put this key before the old one, with a comma between: ORCHESTRATOR_ENCRYPTION_KEYS=NEW,OLD
   (or so in the file ORCHESTRATOR_ENCRYPTION_KEYS_FILE names; `orchestrator up` keeps it in DATA_DIR/keys).
2. Restart the API and the workers: both keys open, the first one seals.
3. Run `orchestrator rotate-keys`.
4. Remove the old key and restart again. Keep it as long as you keep backups made before."""


@contextlib.contextmanager
def opened(data_dir: Path | None) -> Iterator[Database]:
    """Yield the installation's database, its schema checked."""
    with one_line_failures(), database_of(load_settings(data_dir=data_dir)) as url:
        version.require_current(url)
        database = Database(url, "orchestrator server command")
        try:
            yield database
        finally:
            database.engine.dispose()


def validity(expires_at: dt.datetime | None, now: dt.datetime) -> str:
    """Return in words how long something is valid that was not revoked."""
    if expires_at is None:
        return "valid for ever"
    return "expired" if expires_at <= now else f"valid until {expires_at:%Y-%m-%d %H:%M}"
