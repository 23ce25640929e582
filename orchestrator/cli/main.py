"""The `orchestrator` command: client commands speak HTTP only, server commands run on the server.

A command's module is imported when the command is called, so that `orchestrator stack list` does not load the
server.
"""

from __future__ import annotations

from importlib import import_module

import click

import orchestrator

COMMANDS = {
    "stack": "orchestrator.cli.stack:stack",
    "validate": "orchestrator.cli.validate:validate",
    "up": "orchestrator.cli.up:up",
    "migrate": "orchestrator.cli.server:migrate",
    "token": "orchestrator.cli.server:token",
    "rotate-keys": "orchestrator.cli.server:rotate_keys",
}


class LazyGroup(click.Group):
    """A group that finds its commands by name in COMMANDS."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the command."""
        target = COMMANDS.get(cmd_name)
        if target is None:
            return None
        module, _, attribute = target.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command


@click.group(cls=LazyGroup)
@click.version_option(orchestrator.__version__, prog_name="orchestrator")
def main() -> None:
    """Hand it a template; it makes the world so, and keeps it so."""


if __name__ == "__main__":
    main()
