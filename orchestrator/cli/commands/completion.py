"""`orchestrator completion`: the script that completes commands, options and stack names in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

PROGRAM = "orchestrator"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    bash: add `eval "$(orchestrator completion bash)"` to ~/.bashrc; zsh: the same in ~/.zshrc; fish:
    `orchestrator completion fish | source` in ~/.config/fish/config.fish.
    """
    made = get_completion_class(shell)
    assert made is not None  # click has all three
    script = made(ctx.find_root().command, {}, PROGRAM, f"_{PROGRAM.upper()}_COMPLETE")
    click.echo(script.source_template % script.source_vars())
