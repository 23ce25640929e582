"""`orchestrator stack …`: the table of the stack commands."""

from __future__ import annotations

from typing import Final

import click

from orchestrator.cli.lazy_group import Entry, LazyGroup

_COMMANDS: Final = "orchestrator.cli.commands"
COMMANDS: Final = {
    "create": Entry(f"{_COMMANDS}.stack_create_update:create", "Create a stack from a template."),
    "update": Entry(f"{_COMMANDS}.stack_create_update:update", "Update a stack, even during another action."),
    "list": Entry(f"{_COMMANDS}.stack_show:list_stacks", "List the stacks of the project, newest first."),
    "show": Entry(f"{_COMMANDS}.stack_show:show", "Show status, parameters and outputs of a stack."),
    "resources": Entry(f"{_COMMANDS}.resource:resources", "List the resources of a stack."),
    "events": Entry(f"{_COMMANDS}.stack_events:events", "Print the events of a stack, oldest first."),
    "outputs": Entry(f"{_COMMANDS}.stack_show:outputs", "Print the outputs of a stack, or the value of one."),
    "template": Entry(f"{_COMMANDS}.stack_show:template", "Print the template of a stack as YAML."),
    "delete": Entry(f"{_COMMANDS}.stack_delete:delete", "Delete stacks with all their resources."),
    "check": Entry(f"{_COMMANDS}.stack_actions:check", "Check all resources of a stack at their providers."),
    "converge": Entry(f"{_COMMANDS}.converge:converge", "Observe a stack now, and repair what differs."),
    "suspend": Entry(f"{_COMMANDS}.stack_actions:suspend", "Suspend the resources of a stack."),
    "resume": Entry(f"{_COMMANDS}.stack_actions:resume", "Resume the resources of a suspended stack."),
    "cancel": Entry(f"{_COMMANDS}.stack_actions:cancel", "Cancel the update of a stack and roll it back."),
    "signal": Entry(f"{_COMMANDS}.stack_resource:signal", "Send a signal to a resource."),
    "hooks": Entry(f"{_COMMANDS}.stack_resource:hooks", "List the resources of a stack that wait at a hook."),
    "clear-hook": Entry(
        f"{_COMMANDS}.stack_resource:clear_hook", "Clear the hook at which a resource waits."
    ),
    "mark-unhealthy": Entry(
        f"{_COMMANDS}.stack_resource:mark_unhealthy", "Mark a resource for replacement by the next update."
    ),
    "metadata": Entry(f"{_COMMANDS}.stack_resource:metadata", "Print the metadata of a resource as YAML."),
    "revisions": Entry(
        f"{_COMMANDS}.stack_revisions:revisions", "List the revisions of a stack, newest first."
    ),
    "revision": Entry(f"{_COMMANDS}.stack_revisions:revision", "Show one revision of a stack."),
    "diff": Entry(f"{_COMMANDS}.stack_diff:diff", "Show the differences between two revisions of a stack."),
    "rollback": Entry(f"{_COMMANDS}.stack_revisions:rollback", "Roll a stack back to an earlier revision."),
    "failures": Entry(f"{_COMMANDS}.stack_revisions:failures", "List the causes of a stack's failure."),
    "snapshot": Entry(f"{_COMMANDS}.stack_snapshot:snapshot", "Manage the snapshots of a stack."),
    "export": Entry(f"{_COMMANDS}.stack_adoption:export", "Print a stack as a document for `adopt`."),
    "abandon": Entry(
        f"{_COMMANDS}.stack_adoption:abandon", "Delete a stack but keep all its resources at their providers."
    ),
    "adopt": Entry(f"{_COMMANDS}.stack_adoption:adopt", "Create a stack from existing resources."),
}


@click.group(cls=LazyGroup, entries=COMMANDS)
def stack() -> None:
    """Create, update, inspect and delete stacks."""
