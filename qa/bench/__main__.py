"""`python -m qa.bench`: measure the selected shapes and sizes, or with --bars the promised figures."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

import click

from orchestrator.cli.commands.up import available_cores
from orchestrator.errors import OrchestratorError
from qa.bench import counters, judging
from qa.bench.api_rate import measure_api
from qa.bench.bars import BARS
from qa.bench.crowd import measure_crowd
from qa.bench.judging import Expected
from qa.bench.measure import Measurement, Unfinished
from qa.bench.observing import measure_observation
from qa.bench.parse import RESOURCES, ROUNDS, measure_parse
from qa.bench.resolving import measure_resolving
from qa.bench.results import BASE, Results, line, show, write
from qa.bench.servers import Servers, servers, system
from qa.bench.shapes import OPERATIONS, SHAPES
from qa.bench.yardstick import Gauge

PARSE = "parse"  # no shape of a stack: needs no servers, and has its own size
OBSERVE = "observe"  # nor this: the continuous observation, at 1,000 to 100,000 resources
API = "api"  # nor is this: requests to a project of its own size
HUGE = 1_000_000
HUGE_SHAPES = ("layered",)
HUGE_OPERATIONS = ("create", "change-one", "delete")


def chosen(value: str, recorded: Sequence[str]) -> list[str]:
    """Return the names in a comma-separated list.

    Raises:
        click.BadParameter: a name is unknown.
    """
    names = [name.strip() for name in value.split(",") if name.strip()]
    for name in names:
        if name not in recorded:
            raise click.BadParameter(f"{name!r} is none of {', '.join(recorded)}")
    return names


def numbers(value: str) -> list[int]:
    """Return the numbers in a list with commas.

    Raises:
        click.BadParameter: something else is in it.
    """
    try:
        result = [int(part) for part in value.replace("_", "").split(",")]
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is no list of numbers") from error
    if min(result) < 2:
        raise click.BadParameter("a shape has two resources at least")
    return result


@click.command()
@click.option(
    "--shapes",
    help=f"Shapes, of {', '.join((*SHAPES, PARSE, API, OBSERVE))}. Regardless of the sizes, {PARSE} parses "
    f"{RESOURCES:,} resources, {API} requests stacks, and {OBSERVE} observes resources.  "
    f"[default: all, but with {HUGE:,} resources {', '.join(HUGE_SHAPES)}]",
)
@click.option("--sizes", default="1000", show_default=True, help="Numbers of resources, separated by commas.")
@click.option("--ops", help=f"Operations, of {', '.join(OPERATIONS)}.  [default: all]")
@click.option("--workers", type=click.IntRange(1, 256), help="Worker processes.  [default: one per core]")
@click.option("--repeat", type=click.IntRange(1, 100), default=1, show_default=True, help="Runs of each.")
@click.option(
    "--rows", is_flag=True, help="Count the rows that are read and written; takes half a minute per run."
)
@click.option("--json", "path", type=click.Path(path_type=Path), help="File for the figures.")
@click.option("--bars", "hold", is_flag=True, help="Check all guaranteed minimums; exit with 1 on a miss.")
@click.option("--bar", "only", help=f"Check only these, of {', '.join(BARS)}.")
def main(
    *,
    shapes: str | None,
    sizes: str,
    ops: str | None,
    workers: int | None,
    repeat: int,
    rows: bool,
    path: Path | None,
    hold: bool,
    only: str | None,
) -> None:
    """Measure the speed of stack operations, on embedded servers."""
    held = chosen(only, tuple(BARS)) if only else list(BARS) if hold else []
    expected = [BARS[name] for name in held]
    plan = judging.plan(expected) if held else asked_for(numbers(sizes), shapes, ops, repeat, rows=rows)
    parsing = any(shape.parsing for shape in expected) if held else shapes is None or PARSE in shapes
    asking = any(shape.api for shape in expected) if held else shapes is None or API in shapes
    observing = any(shape.observing for shape in expected) if held else shapes is None or OBSERVE in shapes
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _terminated)
    results = Results()
    try:
        if parsing:
            measure_parsing(results)
        if observing:
            results.observed = measure_observation(tell=_print)
        if plan or asking or any(shape.crowd for shape in expected):
            with servers() as on:
                if asking:
                    measure_requests(on, results)
                if plan or any(shape.crowd for shape in expected):
                    measure_all(on, plan, workers or available_cores(), results)
                if any(shape.crowd for shape in expected):
                    measure_beside(on, workers or available_cores(), results)
    except (OrchestratorError, Unfinished, TimeoutError, subprocess.SubprocessError) as error:
        raise click.ClickException(str(error)) from error
    finally:  # also of a run that was interrupted
        show(results)
    verdicts = judging.judge(results, held)
    for verdict in verdicts:
        click.echo(str(verdict))
    if verdicts:
        click.echo(judging.circumstances(results))
    click.echo(f"Written to {write(results, path, verdicts)}")
    sys.exit(1 if judging.short(verdicts) or results.failures else 0)


def asked_for(
    sizes: Sequence[int], shapes: str | None, ops: str | None, repeat: int, *, rows: bool
) -> list[Expected]:
    """Return the selected measurements; for HUGE stacks also those of BASE, and fewer of all."""
    huge = max(sizes) >= HUGE
    if huge:
        sizes = sorted({BASE, *sizes})
    names = (
        chosen(shapes, (*SHAPES, PARSE, API, OBSERVE)) if shapes else HUGE_SHAPES if huge else tuple(SHAPES)
    )
    operations = chosen(ops, OPERATIONS) if ops else HUGE_OPERATIONS if huge else OPERATIONS
    return [
        Expected(name, size, tuple(operations), repeat, rows)
        for size in sizes
        for name in names
        if name not in {PARSE, API, OBSERVE}
    ]


def measure_requests(on: Servers, results: Results) -> None:
    """Measure API requests while the workers are idle."""
    with system(on, 1) as running, closing(running.connect()) as db:
        try:
            results.api += measure_api(running, db)
        except Unfinished as error:
            results.failures.append(str(error))
        finally:
            counters.empty(db)
    for item in results.api:
        _print(str(item))


def measure_parsing(results: Results) -> None:
    """Measure, in rounds, reading a large template and resolving a single resource."""
    for _ in range(ROUNDS):
        run = measure_parse()
        results.parses.append(run)
        results.resolve_ms.append(measure_resolving())
        _print(f"{run}; {results.resolve_ms[-1]:.3f} ms to resolve a resource")


def measure_all(on: Servers, plan: Sequence[Expected], workers: int, results: Results) -> None:
    """Measure in rounds, each once: all see the machine as it changes."""
    gauge = Gauge(on, workers, results.yardsticks)
    for number in range(max((expected.times for expected in plan), default=1)):
        _measure_round(
            on, [expected for expected in plan if expected.times > number], workers, gauge, results
        )


def _measure_round(on: Servers, todo: list[Expected], workers: int, gauge: Gauge, results: Results) -> None:
    """Measure each once; after a stack that does not end, go on with a new system."""
    while todo:
        with _measurement(on, workers) as measurement:
            while todo:
                expected = todo.pop(0)
                try:
                    _measure(measurement, expected, gauge, results)
                except Unfinished as error:
                    results.failures.append(str(error))
                    _print(f"failed: {error}\n{measurement.system.last_words()}")
                    break


@contextmanager
def _measurement(on: Servers, workers: int) -> Iterator[Measurement]:
    with system(on, workers) as running, closing(running.connect()) as db:
        measurement = Measurement(running, db)
        with closing(measurement.client):
            try:
                measurement.warm_up()
            except Unfinished:
                _print(running.last_words())
                raise
            yield measurement


def _measure(measurement: Measurement, expected: Expected, gauge: Gauge, results: Results) -> None:
    """Measure a stack, with the yardstick before and after each operation."""
    runs = measurement.measure(
        expected.shape, expected.size, expected.operations, rows=expected.rows, listing=expected.listing
    )
    before = gauge.read()
    for measured in runs:
        after = gauge.read()
        run = replace(
            measured,
            empty_per_second=(before.tasks_per_second + after.tasks_per_second) / 2,
            empty_cpu_ms=(before.cpu_ms + after.cpu_ms) / 2,
        )
        before = after
        results.runs.append(run)
        name, size, operation, request, seconds, rate, ratio, *_ = line(run, results)
        _print(
            f"{operation} {name} {size}: {rate}/s, {ratio} of the empty task, {seconds} s after {request} s"
        )


def measure_beside(on: Servers, workers: int, results: Results) -> None:
    """Measure small stacks on an idle system and next to a large stack."""
    with _measurement(on, workers) as measurement:
        try:
            results.crowds.append(measure_crowd(measurement))
        except Unfinished as error:
            results.failures.append(str(error))
        else:
            _print(str(results.crowds[-1]))


def _print(text: str) -> None:
    """Say how far it is; the table comes at the end."""
    click.echo(text, err=True)


def _terminated(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
