"""`orchestrator worker`: a worker process of Celery, configured for this application."""

from __future__ import annotations

import os
from importlib import import_module

import click
from celery.app.utils import find_app  # without the extra `server` this fails, and the command says so

from orchestrator.cli.exit_codes import Failure
from orchestrator.cli.import_path import remove_current_directory
from orchestrator.cli.server_settings import load_settings, one_line_failures
from orchestrator.embedded.processes import PROVIDER_THREADS, READY_MODULE
from orchestrator.errors import Misconfigured

QUEUES = ("check", "observe", "bulk", "provider")


def read_queues(_ctx: click.Context, option: click.Parameter, text: str) -> tuple[str, ...]:
    """Read a list of queue names with commas between them."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in names if name not in QUEUES]
    if unknown or not names:
        raise click.BadParameter(
            f"unknown queue {', '.join(unknown) or repr(text)}; the queues are {', '.join(QUEUES)}",
            param=option,
        )
    return names


@click.command()
@click.option(
    "--queues",
    default=",".join(QUEUES),
    show_default=True,
    callback=read_queues,
    metavar="NAME,…",
    help="Process the messages of these queues.",
)
@click.option(
    "--threads",
    type=click.IntRange(1, 1_000),
    help=f"Process this many messages at once. Suits the queue provider, whose messages wait for services:"
    f" {PROVIDER_THREADS} is a good number.  [default: one message at a time]",
)
@click.option(
    "--name",
    default="worker@%h",
    show_default=True,
    help="Name of the worker; %h is the name of this machine. Two workers may not have the same name.",
)
@click.option("--events", is_flag=True, help="Send task events, which Flower requires.")
def worker(queues: tuple[str, ...], threads: int | None, name: str, events: bool) -> None:
    """Run a worker.

    Database, broker and keys come from ORCHESTRATOR_DATABASE_URL, ORCHESTRATOR_BROKER_URL and
    ORCHESTRATOR_ENCRYPTION_KEYS. SIGTERM ends the worker after the messages in progress.
    """
    remove_current_directory()
    with one_line_failures():
        if load_settings().database_url is None:
            raise Misconfigured("set ORCHESTRATOR_DATABASE_URL and ORCHESTRATOR_BROKER_URL")
        # Only now, as it reads the settings; without Celery's default `imp`, which searches this directory.
        app = find_app("tasks.app:app", imp=import_module)
    pool = ("--pool=threads", f"--concurrency={threads}") if threads else ("--pool=solo",)
    watched = ("--task-events",) if events else ()
    quiet = ("--without-gossip", "--without-mingle", f"--include={READY_MODULE}", "--loglevel=INFO")
    options = (*pool, f"--queues={','.join(queues)}", f"--hostname={name}", *watched, *quiet)
    os.environ.setdefault("PYTHONSAFEPATH", "1")  # child processes neither
    try:
        app.worker_main(["--quiet", "worker", *options])
    except OSError as error:
        raise Failure(f"the worker cannot start: {error}") from error
