"""Groups of commands whose modules are imported only when a command runs.

`orchestrator stack list` must not load the server, and `orchestrator --help` must not load anything: the
table of a group holds the help line of each command.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from orchestrator.cli.exit_codes import Exit, Failure

CLIENT_OPTIONS: Final = frozenset({"--url", "--project", "--profile", "--json", "--quiet"})
OWN_PACKAGES: Final = frozenset({"orchestrator", "api", "tasks"})


@dataclass(frozen=True, slots=True)
class Entry:
    """A command of a group, not imported yet."""

    target: str  # module:attribute
    help: str  # the first line of the command's help
    extra: str = ""  # the extra of the distribution that the command requires; "": none


class LazyGroup(click.Group):
    """A group with a table of commands, in addition to commands registered in the usual way."""

    def __init__(self, *args: Any, entries: Mapping[str, Entry], **kwargs: Any) -> None:
        """Keep the table; click takes the other arguments."""
        super().__init__(*args, **kwargs)
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return [*super().list_commands(ctx), *self.entries]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; without its extra, a command that fails with the remedy."""
        entry = self.entries.get(cmd_name)
        if entry is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = entry.target.partition(":")
        try:
            command: click.Command = getattr(import_module(module), attribute)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if not entry.extra or missing in OWN_PACKAGES:
                raise
            return _unavailable(cmd_name, entry, missing)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; the error for an unknown name suggests similar names."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            names = self.list_commands(ctx)
            raise click.NoSuchCommand(error.command_name, possibilities=names, ctx=ctx) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands and options that begin with `incomplete`, without importing a module."""
        items = [
            CompletionItem(name, help=entry.help)
            for name, entry in self.entries.items()
            if name.startswith(incomplete)
        ]
        names = {item.value for item in items}
        own_commands = (self.commands if not self.entries else {}).items()
        items += [
            CompletionItem(name, help=command.get_short_help_str())
            for name, command in own_commands
            if name.startswith(incomplete) and name not in names
        ]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the client commands, then the server commands, without importing a module."""
        registered = {name: command.get_short_help_str(100) for name, command in self.commands.items()}
        client = registered | {name: entry.help for name, entry in self.entries.items() if not entry.extra}
        server = {name: entry.help for name, entry in self.entries.items() if entry.extra}
        for title, rows in (("Commands", client), ("Server commands", server)):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(list(rows.items()))


class RootGroup(LazyGroup):
    """The whole command line: a usage error ends with 1, because 2 means "changes", and Ctrl-C with 130."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: object
    ) -> click.Context:
        """Parse the options before the command."""
        for stream in (sys.stdout, sys.stderr):  # a terminal may lack characters
            if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
                stream.reconfigure(errors="replace")
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.NoSuchOption as error:
            if parent is None and error.option_name in CLIENT_OPTIONS:
                hint = (
                    f"{error.option_name} follows the command: orchestrator stack list {error.option_name} …"
                )
                raise Failure(f"No such option {error.option_name!r} here", details=[f"  {hint}"]) from None
            raise _with_exit_code(error) from None
        except click.UsageError as error:
            raise _with_exit_code(error) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Parse the rest and run the command."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise _with_exit_code(error) from None
        except KeyboardInterrupt:
            raise Failure("interrupted", code=Exit.INTERRUPTED) from None


def _with_exit_code(error: click.UsageError) -> click.UsageError:
    error.exit_code = int(Exit.ERROR)  # type: ignore[misc]  # click reads it from the instance
    return error


def _unavailable(name: str, entry: Entry, missing: str) -> click.Command:
    def fail() -> None:
        raise Failure(
            f"`orchestrator {name}` requires the server: the package {missing} is not installed",
            details=[f"  install it with: pip install 'stack-orchestrator[{entry.extra}]'"],
        )

    return click.Command(
        name,
        callback=fail,
        help=entry.help,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )
