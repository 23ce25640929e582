"""The options that commands have in common, and the session that each client command receives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec

import click
import orjson
from click.core import ParameterSource
from rich.console import Console

from orchestrator.cli.argument_values import complete_stacks
from orchestrator.cli.client.api_client import Client
from orchestrator.cli.exit_codes import Failure, clean
from orchestrator.cli.profiles import DEFAULT_PROJECT, DEFAULT_URL, endpoint
from orchestrator.cli.template_files.load import Source, request_body
from orchestrator.json_types import JsonMapping, JsonObject

FILE: Final = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)  # "-": standard input
P = ParamSpec("P")
Command = Callable[..., Any]


@dataclass(slots=True)
class Session:
    """The connection and the output form of a command."""

    client: Client
    as_json: bool
    quiet: bool

    @property
    def project(self) -> str:
        """The project of all requests."""
        return self.client.connection.project

    @property
    def interactive(self) -> bool:
        """Whether progress is shown on a terminal."""
        return not self.quiet and self.progress().is_terminal

    def out(self) -> Console:
        """Return the console for results; in a pipe no line is wrapped."""
        return console(stderr=False)

    def progress(self) -> Console:
        """Return the console for progress: standard error if the result is JSON."""
        return console(stderr=self.as_json)

    def say(self, text: str) -> None:
        """Print a message that is not the result; neither with --quiet nor with --json."""
        if not self.quiet and not self.as_json:
            self.out().print(clean(text), markup=False, highlight=False, soft_wrap=True)

    def document(self, value: object) -> None:
        """Print the result as a JSON document."""
        click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())

    def line(self, value: object) -> None:
        """Print a result of many as a line of JSON."""
        click.echo(orjson.dumps(value).decode())


def console(*, stderr: bool) -> Console:
    """Return a console that respects NO_COLOR; in a pipe, without colours and line wrapping."""
    made = Console(stderr=stderr, highlight=False)
    return made if made.is_terminal else Console(stderr=stderr, highlight=False, width=100_000)


def queue_option(command: Command) -> Command:
    """Add the option `--queue` of actions that may wait for the operation in progress."""
    return click.option(
        "--queue", is_flag=True, help="If an operation is in progress, start the action when it is complete."
    )(command)


def client_command(command: Callable[Concatenate[Session, P], None]) -> Callable[P, None]:
    """Add the options of all client commands to `command`, which receives a `Session` first."""

    @click.option("--url", help=f"Address of the server.  [env: ORCHESTRATOR_URL; default: {DEFAULT_URL}]")
    @click.option(
        "--project", help=f"Project of the stacks.  [env: ORCHESTRATOR_PROJECT; default: {DEFAULT_PROJECT}]"
    )
    @click.option("--profile", help="Profile of the configuration file.  [env: ORCHESTRATOR_PROFILE]")
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    @click.option("-q", "--quiet", is_flag=True, help="Print only results and errors.")
    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        url, project, profile = (kwargs.pop(name) for name in ("url", "project", "profile"))
        as_json, quiet = bool(kwargs.pop("as_json")), bool(kwargs.pop("quiet"))
        try:
            server = endpoint(url, project, profile)  # type: ignore[arg-type]  # strings or None, says click
            with Client(server.url, server.project, server.token, login=server.login) as client:
                command(Session(client, as_json, quiet), *args, **kwargs)
        except Failure as failure:
            if as_json:
                click.echo(orjson.dumps(failure.document(), option=orjson.OPT_INDENT_2).decode())
            raise

    return run


def stack_argument(command: Command) -> Command:
    """Add the argument STACK, a stack's name or id, with completion."""
    argument = click.argument("name", metavar="STACK", callback=_not_empty, shell_complete=complete_stacks)
    return argument(command)


def _not_empty(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    if not value:
        raise click.BadParameter("a stack's name or id is required")
    return value


def yes_option(command: Command) -> Command:
    """Add `--yes`."""
    return click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")(command)


def only_with(flag: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Return a callback that refuses an option without the flag that gives it an effect.

    The flag must be eager, so that click reads it first.
    """

    def check(ctx: click.Context, option: click.Parameter, value: object) -> Any:
        is_explicit = ctx.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if is_explicit and not ctx.params.get(flag.lstrip("-").replace("-", "_")):
            raise click.UsageError(f"{option.opts[-1]} has no effect without {flag}", ctx)
        return value

    return check


def pairs(_ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> JsonObject:
    """Return `NAME=VALUE` arguments as a mapping; a repeated name becomes a list, as in Heat's client."""
    result: JsonObject = {}
    for item in values:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{item!r} is not of the form NAME=VALUE", param=option)
        previous = result.get(key)
        result[key] = (
            value if previous is None else [*(previous if isinstance(previous, list) else [previous]), value]
        )
    return result


@dataclass(frozen=True, slots=True)
class Wait:
    """Whether to wait for the end of an action; false in a condition if not."""

    enabled: bool
    timeout_seconds: float | None

    def __bool__(self) -> bool:
        """Whether to wait."""
        return self.enabled


def wait_options(command: Command) -> Command:
    """Add `--wait` and `--wait-timeout`; the command receives `wait`, a `Wait`."""

    @click.option("--wait", is_flag=True, is_eager=True, help="Wait until the action has ended.")
    @click.option(
        "--wait-timeout",
        type=click.FloatRange(0),
        metavar="SECONDS",
        callback=only_with("--wait"),
        help="Stop waiting after SECONDS, with exit code 4; the action continues.",
    )
    @wraps(command)
    def run(*args: object, wait: bool, wait_timeout: float | None, **kwargs: object) -> Any:
        return command(*args, wait=Wait(wait, wait_timeout), **kwargs)

    return run


ENVIRONMENT_OPTION: Final = click.option(
    "-e",
    "--environment",
    "environments",
    type=FILE,
    multiple=True,
    help="Environment file; repeatable, later files override earlier files.",
)
PARAMETER_OPTION: Final = click.option(
    "-P",
    "--parameter",
    "parameters",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="Value of a parameter; repeatable.",
)


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """The parts of a create or update request other than the template."""

    environments: tuple[Path, ...]
    parameters: JsonMapping
    timeout_mins: int | None
    tags: tuple[str, ...]
    rollback: bool | None
    keep_going: bool | None
    resume: bool | None

    def body(self, source: Source, **fields: object) -> JsonObject:
        """Return the body of the request."""
        return request_body(
            source,
            self.environments,
            self.parameters,
            timeout_mins=self.timeout_mins,
            tags=",".join(self.tags) or None,
            disable_rollback=None if self.rollback is None else not self.rollback,
            keep_going=self.keep_going,
            resume=self.resume,
            **fields,
        )


def request_options(command: Command) -> Command:
    """Add the options of `RequestOptions`; the command receives `request`."""

    @ENVIRONMENT_OPTION
    @PARAMETER_OPTION
    @click.option(
        "--timeout",
        "timeout_mins",
        type=click.IntRange(1),
        metavar="MINUTES",
        help="Fail the action after MINUTES.",
    )
    @click.option("--tag", "tags", multiple=True, help="Tag of the stack; repeatable.")
    @click.option(
        "--rollback/--disable-rollback", default=None, help="Undo the action if it fails, or keep the result."
    )
    @click.option(
        "--keep-going/--stop-on-failure",
        default=None,
        help="After a failure, continue with resources that do not require the failed resource, or stop.",
    )
    @click.option(
        "--resume/--no-resume",
        default=None,
        help="Continue after an outage of a service that outlasted the timeout, or stay FAILED.",
    )
    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        request = RequestOptions(**{name: kwargs.pop(name) for name in RequestOptions.__slots__})
        return command(*args, request=request, **kwargs)

    return run


def preview_options(command: Command) -> Command:
    """Add `--preview` and `--detailed-exitcode`."""
    for option in (
        click.option(
            "--detailed-exitcode",
            is_flag=True,
            callback=only_with("--preview"),
            help="With --preview: exit with 0 without changes, 2 with changes, 1 after an error.",
        ),
        click.option("--preview", is_flag=True, is_eager=True, help="Show the changes, and make none."),
    ):
        command = option(command)
    return command
