"""Settings and errors of the commands that run on the server."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError
from pydantic_settings import SettingsError

from orchestrator.cli.exit_codes import Failure
from orchestrator.config import Settings
from orchestrator.errors import Misconfigured, OrchestratorError

Command = Callable[..., Any]


def data_dir_option(command: Command) -> Command:
    """Add `--data-dir`."""
    return click.option(
        "--data-dir",
        type=click.Path(file_okay=False, path_type=Path),
        help="Data directory of the embedded servers.  [default: .orchestrator]",
    )(command)


@contextlib.contextmanager
def one_line_failures() -> Iterator[None]:
    """Report errors for the operator as one line, with exit code 1."""
    try:
        yield
    except OrchestratorError as error:
        first, *rest = str(error).splitlines()
        raise Failure(first, details=rest) from error


def load_settings(**options: object) -> Settings:
    """Return the settings; options of the command line override the environment.

    Raises:
        Misconfigured: a value is not valid; names the variable.
    """
    try:
        return Settings(**{name: value for name, value in options.items() if value is not None})  # type: ignore[arg-type]
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        name = "_".join(str(part) for part in fault["loc"]).upper()
        raise Misconfigured(f"ORCHESTRATOR_{name}: {fault['msg']}") from error
    except (SettingsError, OSError) as error:
        raise Misconfigured(f"a setting cannot be read: {error}") from error
