"""`python -m qa.soak`: kill for the given time; exit with 1 if anything was wrong."""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

import click

from qa.soak.run import Plan, run

SECONDS_PER_KILL = 60.0  # at most: an installation that needs longer does not recover


@click.command()
@click.option(
    "--seconds", type=float, default=120.0, show_default=True, help="How long requests and kills go on."
)
@click.option("--seed", type=int, help="What to repeat.  [default: from the clock]")
@click.option("--kill-seconds", type=float, default=3.0, show_default=True, help="Between two kills, about.")
@click.option("--stacks", type=int, default=5, show_default=True, help="How many there are at a time.")
@click.option("--kills", type=int, default=0, help="End after this number of kills; replaces --seconds.")
@click.option(
    "--outages", type=float, default=0.0, help="Maximum seconds of an outage of a service; 0: none."
)
@click.option("--stuck", type=float, default=0.0, help="Fraction of objects that never become ready.")
@click.option("--held", type=float, default=0.0, help="Fraction of changes that are carried out late.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of the installation.")
@click.option("--keep", type=click.Path(path_type=Path), help="A folder for data and logs that stays.")
def main(
    *,
    seconds: float,
    seed: int | None,
    kill_seconds: float,
    stacks: int,
    kills: int,
    outages: float,
    stuck: float,
    held: float,
    settings: tuple[str, ...],
    keep: Path | None,
) -> None:
    """Send random requests to its own installation and kill its processes."""
    signal.signal(signal.SIGTERM, _terminated)  # child processes are stopped at exit
    chosen = dict(setting.split("=", 1) for setting in settings)
    plan = Plan(
        seconds=max(seconds, kills * SECONDS_PER_KILL),
        seed=int(time.time()) if seed is None else seed,
        kill_seconds=kill_seconds,
        stacks=stacks,
        kills=kills,
        outage_seconds=outages,
        stuck=stuck,
        held=held,
        settings={f"ORCHESTRATOR_{name.upper()}": value for name, value in chosen.items()},
    )
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        report = run(keep, plan)
    else:
        with tempfile.TemporaryDirectory(prefix="orchestrator-kills-") as name:
            Path(name).chmod(0o711)
            report = run(Path(name), plan)
    click.echo(str(report))
    sys.exit(1 if report.faults else 0)


def _terminated(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
