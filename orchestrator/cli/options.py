"""What every client command takes: where the server is, who is asking, and in which form to answer."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec

import click
import orjson
from rich.console import Console

from orchestrator.cli.client.api_client import Client
from orchestrator.cli.exit_codes import Failure, clean

FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)

DEFAULT_URL = "http://127.0.0.1:8004"
DEFAULT_PROJECT = "demo"
P = ParamSpec("P")


@dataclass(slots=True)
class Session:
    """One command's server and its manner of speaking."""

    client: Client
    as_json: bool
    quiet: bool

    @property
    def watched(self) -> bool:
        """Whether a person follows the progress on a terminal."""
        return not self.quiet and self.progress().is_terminal

    def out(self) -> Console:
        """Return where results go; in a pipe a line is never folded."""
        return console(stderr=False)

    def progress(self) -> Console:
        """Return where progress goes: beside the results, or to standard error when those are JSON."""
        return console(stderr=self.as_json)

    def say(self, text: str) -> None:
        """Tell a person something that is not the result."""
        if not self.quiet and not self.as_json:
            self.out().print(clean(text), markup=False, highlight=False, soft_wrap=True)

    def document(self, value: object) -> None:
        """Print the result as one JSON document."""
        click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())

    def line(self, value: object) -> None:
        """Print one of many results as a line of JSON."""
        click.echo(orjson.dumps(value).decode())


def console(*, stderr: bool) -> Console:
    """Return a console; NO_COLOR and pipes are respected, and a pipe is as wide as its longest line."""
    made = Console(stderr=stderr, highlight=False)
    return made if made.is_terminal else Console(stderr=stderr, highlight=False, width=100_000)


def client_command(command: Callable[Concatenate[Session, P], None]) -> Callable[P, None]:
    """Give `command` the common options and a `Session` made from them."""

    @click.option(
        "--url", envvar="ORCHESTRATOR_URL", default=DEFAULT_URL, show_default=True, help="The server."
    )
    @click.option(
        "--project",
        envvar="ORCHESTRATOR_PROJECT",
        default=DEFAULT_PROJECT,
        show_default=True,
        help="Whose stacks.",
    )
    @click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
    @click.option("-q", "--quiet", is_flag=True, help="Results and errors only.")
    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        url, project = str(kwargs.pop("url")), str(kwargs.pop("project"))
        as_json, quiet = bool(kwargs.pop("as_json")), bool(kwargs.pop("quiet"))
        try:
            with Client(url, project, _token(), login=_login()) as client:
                command(Session(client, as_json, quiet), *args, **kwargs)
        except Failure as failure:
            if as_json:
                click.echo(orjson.dumps(failure.document(), option=orjson.OPT_INDENT_2).decode())
            raise

    return run


def pairs(_ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, Any]:
    """Turn `k=v` arguments into a mapping; a key given twice or more becomes a list, as in Heat's client."""
    found: dict[str, Any] = {}
    for item in values:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{item!r} is not of the form name=value", param=option)
        known = found.get(key)
        found[key] = value if known is None else [*(known if isinstance(known, list) else [known]), value]
    return found


def _token() -> str | None:
    return _secret("ORCHESTRATOR_TOKEN")


def _login() -> tuple[str, str] | None:
    """Return the name and the password of the environment, where a name is."""
    name = os.environ.get("ORCHESTRATOR_USERNAME")
    return (name, _secret("ORCHESTRATOR_PASSWORD") or "") if name else None


def _secret(variable: str) -> str | None:
    """Return a secret of the environment, or of the file that it names.

    It never travels on a command line, where others could read it.
    """
    if secret := os.environ.get(variable):
        return secret.strip()
    path = os.environ.get(f"{variable}_FILE")
    if not path:
        return None
    try:
        return Path(path).read_text().strip()
    except OSError as error:
        raise Failure(f"{variable}_FILE cannot be read: {error}") from error


def wait_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what says whether to wait, and for how long."""
    options = (
        click.option("--wait", is_flag=True, help="Until it is complete or has failed."),
        click.option(
            "--wait-timeout",
            type=click.FloatRange(0),
            metavar="SECONDS",
            help="Stop waiting; the stack goes on.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def request_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what can be said of a stack besides its template, to make it or to change it."""
    options = (
        click.option(
            "-e",
            "--environment",
            "environments",
            type=FILE,
            multiple=True,
            help="Later ones win; repeatable.",
        ),
        click.option(
            "-P",
            "--parameter",
            "parameters",
            multiple=True,
            callback=pairs,
            metavar="NAME=VALUE",
            help="Repeatable.",
        ),
        click.option(
            "--timeout",
            "timeout_mins",
            type=click.IntRange(1),
            metavar="MINUTES",
            help="For the stack to finish in.",
        ),
        click.option("--tag", "tags", multiple=True, help="Repeatable."),
        click.option(
            "--rollback/--disable-rollback", default=None, help="Undo a failure, or leave it for inspection."
        ),
        click.option(
            "--keep-going/--stop-on-failure",
            default=None,
            help="After a failure go on with all that does not need what failed, or start nothing more.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command
