"""`orchestrator hash-password`: the hash of a password for a file of users (ORCHESTRATOR_AUTH=basic)."""

from __future__ import annotations

import sys

import click

from orchestrator.security import password_file


@click.command("hash-password")
def hash_password() -> None:
    """Hash a password for ORCHESTRATOR_USERS_FILE.

    Asks for the password on a terminal, and otherwise reads it from standard input.
    """
    if sys.stdin.isatty():
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    else:
        password = sys.stdin.readline().rstrip("\n")
    if not password:
        raise click.UsageError("a password cannot be empty")
    click.echo(password_file.hash_password(password))
