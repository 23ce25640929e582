"""The `orchestrator` command. Client commands use HTTP only; server commands run on the server.

The table holds every top-level command. A command's module is imported when the command runs.
"""

from __future__ import annotations

from typing import Final

import click

import orchestrator
from orchestrator import gc_policy
from orchestrator.cli.lazy_group import Entry, RootGroup

gc_policy.collect_rarely()  # before the imports of the command

_COMMANDS: Final = "orchestrator.cli.commands"
COMMANDS: Final = {
    "stack": Entry(f"{_COMMANDS}.stack:stack", "Create, update, inspect and delete stacks."),
    "resource": Entry(f"{_COMMANDS}.resource:resource", "List and show the resources of a stack."),
    "resource-type": Entry(
        f"{_COMMANDS}.resource_type:resource_type", "List and show the resource types of the server."
    ),
    "trace": Entry(f"{_COMMANDS}.trace:trace", "Write the last action of a stack as a trace for Perfetto."),
    "graph": Entry(f"{_COMMANDS}.graph:graph", "Print the dependency graph of a stack or a template."),
    "open": Entry(
        f"{_COMMANDS}.open:open_page", "Open the page of a stack in a browser, and print its address."
    ),
    "why": Entry(f"{_COMMANDS}.why:why", "Explain why a stack is not finished."),
    "events": Entry(f"{_COMMANDS}.events:events", "Print the events of all stacks of the project."),
    "failures": Entry(f"{_COMMANDS}.failures:failures", "Show the causes of a stack's failure as a tree."),
    "drift": Entry(f"{_COMMANDS}.drift:drift", "Show or accept differences from the desired state."),
    "converge": Entry(f"{_COMMANDS}.converge:converge", "Observe a stack now, and repair what differs."),
    "webhook": Entry(f"{_COMMANDS}.webhook:webhook", "Manage webhooks: signed HTTP requests for events."),
    "observation": Entry(
        f"{_COMMANDS}.observation:observation", "Manage policies and pauses of the observation."
    ),
    "repair": Entry(f"{_COMMANDS}.repair:repair", "List, approve and decline repairs."),
    "validate": Entry(f"{_COMMANDS}.validate:validate", "Validate a template without creating anything."),
    "completion": Entry(f"{_COMMANDS}.completion:completion", "Print the completion script for a shell."),
    "up": Entry(f"{_COMMANDS}.up:up", "Run database, broker, workers and API until Ctrl-C.", "embedded"),
    "api": Entry(f"{_COMMANDS}.api:api", "Run the API.", "server"),
    "worker": Entry(f"{_COMMANDS}.worker:worker", "Run a worker.", "server"),
    "migrate": Entry(f"{_COMMANDS}.server:migrate", "Migrate the database schema to this version.", "server"),
    "token": Entry(f"{_COMMANDS}.server:token", "Manage API tokens (ORCHESTRATOR_AUTH=token).", "server"),
    "audit": Entry(f"{_COMMANDS}.audit:group", "Show the audit records of the database.", "server"),
    "quota": Entry(f"{_COMMANDS}.quota:group", "Manage the limits of projects.", "server"),
    "key-pair": Entry(
        f"{_COMMANDS}.key_pair:group", "Manage key pairs for signed CloudFormation requests.", "server"
    ),
    "hash-password": Entry(
        f"{_COMMANDS}.hash_password:hash_password", "Hash a password for ORCHESTRATOR_USERS_FILE.", "server"
    ),
    "rotate-keys": Entry(
        f"{_COMMANDS}.server:rotate_keys", "Re-encrypt all secrets with the newest key.", "server"
    ),
    "purge": Entry(f"{_COMMANDS}.purge:command", "Delete expired stacks, events and revisions.", "server"),
    "verify": Entry(f"{_COMMANDS}.verify:command", "Find resources built with former outputs.", "server"),
}


@click.group(cls=RootGroup, entries=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(orchestrator.__version__, prog_name="orchestrator")
def main() -> None:
    """Declarative stacks: create, update and inspect them.

    Client commands find the server by --url or ORCHESTRATOR_URL. `orchestrator up` starts a server with its
    own database. `orchestrator COMMAND -h` shows the options of a command.
    """


if __name__ == "__main__":
    main()
