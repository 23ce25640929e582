"""The `orchestrator` command: client commands speak HTTP only, server commands run on the server.

A command's module is imported when the command is called, so that `orchestrator stack list` does not load the
server.
"""

from __future__ import annotations

import click

import orchestrator
from orchestrator.cli.lazy_group import LazyGroup

COMMANDS = {
    "stack": "orchestrator.cli.commands.stack:stack",
    "why": "orchestrator.cli.commands.why:why",
    "events": "orchestrator.cli.commands.events:events",
    "failures": "orchestrator.cli.commands.failures:failures",
    "webhook": "orchestrator.cli.commands.webhook:webhook",
    "validate": "orchestrator.cli.commands.validate:validate",
    "up": "orchestrator.cli.commands.up:up",
    "migrate": "orchestrator.cli.commands.server:migrate",
    "token": "orchestrator.cli.commands.server:token",
    "key-pair": "orchestrator.cli.commands.key_pair:group",
    "hash-password": "orchestrator.cli.commands.hash_password:hash_password",
    "rotate-keys": "orchestrator.cli.commands.server:rotate_keys",
    "purge": "orchestrator.cli.commands.purge:command",
}


@click.group(cls=LazyGroup, elsewhere=COMMANDS)
@click.version_option(orchestrator.__version__, prog_name="orchestrator")
def main() -> None:
    """Hand it a template; it makes the world so, and keeps it so."""


if __name__ == "__main__":
    main()
