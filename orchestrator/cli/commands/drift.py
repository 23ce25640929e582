"""`orchestrator drift …`: differences between the desired and the observed state."""

from __future__ import annotations

import click

from orchestrator.cli.lazy_group import LazyGroup
from orchestrator.cli.options import Session, client_command, stack_argument


@click.group(cls=LazyGroup, entries={})
def drift() -> None:
    """Accept differences from the desired state."""


@drift.command()
@stack_argument
@click.argument("path")
@click.option("--reason", required=True, help="Reason, shown with the accepted differences.")
@click.option("--until", metavar="TIME", help="End of the acceptance.  [default: permanent]")
@click.option("--all", "everything", is_flag=True, help="Allow a PATH that accepts every difference.")
@client_command
def accept(
    session: Session, *, name: str, path: str, reason: str, until: str | None, everything: bool
) -> None:
    """Accept the differences at PATH in STACK: they are not reported as drift, and not repaired.

    PATH names properties: web.properties.metadata.*, in nested stacks group.0.server.properties.name. `*`
    stands for any text.
    """
    body = {
        "kind": "accept",
        "stack": name,
        "path": path,
        "reason": reason,
        **({"until": until} if until else {}),
        **({"all": True} if everything else {}),
    }
    accepted = session.client.observation_policies.create(body)
    if session.as_json:
        session.document(accepted)
    else:
        session.say(f"Differences at {path} in {name} are accepted.")
