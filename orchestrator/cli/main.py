"""The `orchestrator` command: client commands speak HTTP only, server commands run on the server.

A command's module is imported when the command is called, so that `orchestrator stack list` does not load the
server.
"""

from __future__ import annotations

import click

import orchestrator
from orchestrator.cli.lazy import LazyGroup

COMMANDS = {
    "stack": "orchestrator.cli.stack:stack",
    "why": "orchestrator.cli.why:why",
    "events": "orchestrator.cli.events:events",
    "failures": "orchestrator.cli.failures:failures",
    "webhook": "orchestrator.cli.webhook:webhook",
    "validate": "orchestrator.cli.validate:validate",
    "up": "orchestrator.cli.up:up",
    "migrate": "orchestrator.cli.server:migrate",
    "token": "orchestrator.cli.server:token",
    "key-pair": "orchestrator.cli.key_pairs:group",
    "hash-password": "orchestrator.cli.passwords:hash_password",
    "rotate-keys": "orchestrator.cli.server:rotate_keys",
    "purge": "orchestrator.cli.purge:command",
}


@click.group(cls=LazyGroup, elsewhere=COMMANDS)
@click.version_option(orchestrator.__version__, prog_name="orchestrator")
def main() -> None:
    """Hand it a template; it makes the world so, and keeps it so."""


if __name__ == "__main__":
    main()
