"""`python -m qa.openstack_bench`: measure the speed with OpenStack; exit with 1 if a bar is missed.

`OPENSTACK_DIR` names a running control plane for the parts `speed` and `readiness`. The other parts use a
simulated cloud. Ratios are those of measurements that alternate in the same run.
"""

from __future__ import annotations

import os
import re
import sys
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Final

import click

from qa.acceptance.disturbances import set_faults
from qa.acceptance.installation import Installation, chosen_directory, installation
from qa.bench.judging import Verdict
from qa.bench.processes import Usage, Watch, busy_seconds
from qa.openstack_bench import stacks
from qa.openstack_bench.counts import requests_received, requests_sent, shown
from qa.openstack_bench.plain_script import PlainScript
from tests import constants

PARTS: Final = ("speed", "readiness", "validation", "fairness", "cpu")
SERVERS, ROUNDS, THREADS = 50, 3, (4, 8, 16)
MANY: Final = int(os.environ.get("BENCH_MANY", "1000"))
LARGE, SMALL = 500, 5
OURS: Final = ("worker", "api", "planner")  # roles of processes

TIMES_PLAIN: Final = 1.15
CPU_MS: Final = 5.0
CLIENT_SECONDS: Final = 1.0  # between two requests of a client for the status
SPEED_SECONDS: Final = 0.5  # the same where the cloud shares the processors, and an action takes minutes
SERVICE_SECONDS: Final = 5.0  # between two samples of the services, which last as long as the control plane
MEMBER: Final = "demo"  # as users are; for administrators, nova's lists contain the user data of servers
VALIDATION_SECONDS, LOOKUPS = 2.0, 10
TIMES_ALONE: Final = 2.0
TIMES_WAITING: Final = 0.7
# A fake hypervisor builds at once, so that the requests of the services take nearly all time.
BUILD_SECONDS: Final = (0.0, 10.0, 30.0)


def measure_speed(on: Installation, rounds: int = ROUNDS) -> Iterator[Verdict]:
    """Create and delete ports and servers: a stack and the script in turn."""
    script = _script(on)
    seconds = {threads: (script.create(SERVERS, threads), script.delete(threads)) for threads in THREADS}
    best = min(seconds, key=lambda threads: seconds[threads][0])
    click.echo(f"plain script, {SERVERS} servers (create s, delete s): {_rounded(seconds)}; best: {best}")
    plain, own, sent = [], [], Counter[tuple[str, str]]()
    for number in range(rounds):
        plain.append((script.create(SERVERS, best), script.delete(best)))
        before = requests_sent(on.up.url)
        name = f"{script.prefix}-{number}"
        created = stacks.create(on, name, stacks.servers_with_ports(SERVERS), SPEED_SECONDS)
        middle = requests_sent(on.up.url)
        own.append((created, stacks.delete(on, name, SPEED_SECONDS)))
        click.echo(f"script {_rounded(plain[-1])} s, stack {_rounded(own[-1])} s")
        click.echo(f"  create: {shown(middle - before, SERVERS)}")
        sent = requests_sent(on.up.url) - before
        click.echo(f"  delete: {shown(requests_sent(on.up.url) - middle, SERVERS)}")
    for position, action in enumerate(("create", "delete")):
        ratio = median(run[position] for run in own) / median(run[position] for run in plain)
        yield Verdict(f"{action} {SERVERS} ports and servers, times the script", ratio, "", TIMES_PLAIN)
    for method in ("POST", "DELETE"):
        count = sum(count for (_, used), count in sent.items() if used == method)
        yield Verdict(f"{method}s for a server and its port", count / SERVERS, "", 2.0)
    gets = sum(count for (_, used), count in sent.items() if used == "GET")
    yield Verdict("GETs for a server and its port", gets / SERVERS, "", 1.0)


def measure_readiness(
    directory: Path | None, rounds: int = ROUNDS, builds: Sequence[float] = BUILD_SECONDS
) -> Iterator[Verdict]:
    """Create a stack whose resources start when their requirements exist, or when they are ready, in turn.

    `builds`: seconds for which the hypervisor builds a server. The share of the processors in use and the
    processor time of each service show how much of the ratio is possible: the control plane does the same
    work in both kinds.
    """
    template, services = stacks.three_tiers(), _service_processes(directory)
    waiting = constants.environment({"early_release": False})
    with (
        installation(directory, workers=2) as early,
        installation(directory, workers=2, settings=waiting) as ready,
    ):
        for build in builds:
            seconds = dict[str, list[float]]()
            for number in range(rounds):
                for kind, on in (("early", early), ("ready", ready)):
                    set_faults(on, directory, {"spawn": {"match": "", "delay": build}} if build else {})
                    name = f"so-readiness-{kind}-{number}-{uuid.uuid4().hex[:6]}"
                    before = busy_seconds()
                    with Watch({**services, on.up.process.pid: "up"}, SERVICE_SECONDS) as watch:
                        created = stacks.create(on, name, template, CLIENT_SECONDS)
                    times = f"{created:.1f} s{_busy_share(before, created)}"
                    click.echo(f"builds of {build:.0f} s, {kind}: {times}: CPU {_cpu(watch.usage)}")
                    seconds.setdefault(kind, []).append(created)
                    set_faults(on, directory, {})
                    stacks.delete(on, name, CLIENT_SECONDS)
            ratio = median(seconds["early"]) / median(seconds["ready"])
            title = f"{len(template['resources'])} resources, builds of {build:.0f} s, times without"
            yield Verdict(title, ratio, "", TIMES_WAITING)


def measure_validation(on: Installation) -> Iterator[Verdict]:
    """Validate many servers with few names, as every create does. The preview of a create is nothing else."""
    openstack = on.openstack
    for number in range(1, 5):
        openstack.network.post("/networks", {"network": {"name": f"bench-net-{number}"}})
    template = stacks.servers(MANY, flavors=3, images=2, networks=5)
    preview: dict[str, object] = {"stack_name": "many", "template": stacks.without_cloud(MANY)}
    on.request("POST", "/stacks/preview", json=preview)  # processes are started
    before = requests_received(on.credentials["OS_AUTH_URL"])
    with Watch({on.up.process.pid: "up"}) as watch:
        preview["template"] = template
        seconds = stacks.timed(lambda: on.request("POST", "/stacks/preview", json=preview))
    received = requests_received(on.credentials["OS_AUTH_URL"]) - before
    click.echo(f"validation of {MANY} servers: {shown(received, 1)}; CPU {_cpu(watch.usage)}")
    yield Verdict(f"validation of {MANY} servers", seconds, " s", VALIDATION_SECONDS)
    yield Verdict(f"look-ups of {LOOKUPS} names", float(received.total()), "", LOOKUPS)


def measure_fairness(on: Installation) -> Iterator[Verdict]:
    """Create a small stack alone and beside a large stack."""
    small, large = stacks.servers(SMALL), stacks.servers(LARGE)
    alone = []
    for _ in range(3):
        alone.append(stacks.create(on, "small", small))
        stacks.delete(on, "small")
    with ThreadPoolExecutor(1) as pool:
        big = pool.submit(stacks.create, on, "large", large)
        stacks.until_known(on, "large")
        beside = stacks.create(on, "small", small)
        still = not big.done()
        stacks.delete(on, "small")
        seconds = big.result()
    stacks.delete(on, "large")
    click.echo(
        f"{SMALL} servers: {median(alone):.1f} s alone, {beside:.1f} s beside {LARGE} in {seconds:.1f} s"
        f"{'' if still else ' (the large stack was complete first)'}"
    )
    yield Verdict(f"{SMALL} servers beside {LARGE}, times alone", beside / median(alone), "", TIMES_ALONE)


def measure_cpu(on: Installation) -> Iterator[Verdict]:
    """Create and delete many servers, for a client that asks for the status once a second. PostgreSQL, the
    broker and the simulated cloud are their own processes and do not count.
    """
    template = stacks.servers(MANY)
    click.echo(f"Python {sys.version}")  # builds of the same version differ by a fifth of the processor time
    stacks.create(on, "first", stacks.servers(SMALL))  # all modules are imported
    stacks.delete(on, "first")
    large: dict[str, object] = {"stack_name": "large", "template": stacks.without_cloud(MANY)}
    on.request("POST", "/stacks/preview", json=large)  # also by the process that forks those for large bodies
    for action in ("create", "delete"):
        before = requests_sent(on.up.url)
        with Watch({on.up.process.pid: "up"}) as watch:
            seconds = (
                stacks.create(on, "many", template, CLIENT_SECONDS)
                if action == "create"
                else stacks.delete(on, "many", CLIENT_SECONDS)
            )
        used = sum(watch.usage.cpu_seconds.get(role, 0.0) for role in OURS)
        click.echo(f"{action} {MANY} servers in {seconds:.1f} s: CPU {_cpu(watch.usage)}")
        click.echo(f"  {shown(requests_sent(on.up.url) - before, MANY)}")
        yield Verdict(f"CPU of a server's {action}", used * 1_000 / MANY, " ms", CPU_MS)


def _script(on: Installation) -> PlainScript:
    openstack = on.openstack
    images = {item["name"]: item["id"] for item in openstack.image.listed("/images", "images")}
    flavors = {item["name"]: item["id"] for item in openstack.compute.listed("/flavors", "flavors")}
    networks = {item["name"]: item["id"] for item in openstack.network.listed("/networks", "networks")}
    prefix = f"so-bench-{uuid.uuid4().hex[:6]}"
    return PlainScript(
        on.cloud, images[stacks.IMAGE], flavors[stacks.FLAVOR], networks[stacks.NETWORK], prefix
    )


def _service_processes(directory: Path | None) -> dict[int, str]:
    """Return the services of a control plane by the process ids in its directory."""
    files = [] if directory is None else list((directory / "run").glob("*.pid"))
    return {int(file.read_text()): re.split(r"[-.]", file.name)[0] for file in files}


def _busy_share(before: float | None, seconds: float) -> str:
    """Return the share of all processors that was in use since `before`, as text; empty without /proc."""
    after = busy_seconds()
    if before is None or after is None:
        return ""
    return f" ({(after - before) / seconds / (os.cpu_count() or 1):.0%} of the processors in use)"


def _rounded(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} threads {_rounded(item)}" for key, item in value.items())
    if isinstance(value, tuple):
        return " + ".join(f"{item:.1f}" for item in value)
    return str(value)


def _cpu(usage: Usage) -> str:
    parts = ", ".join(f"{role} {spent:.1f} s" for role, spent in sorted(usage.cpu_seconds.items()))
    foreign = usage.foreign_share
    return f"{parts}; other processes used {foreign:.0%} of the machine" if foreign is not None else parts


MEASURES: Final = {
    "validation": measure_validation,
    "fairness": measure_fairness,
    "cpu": measure_cpu,
}


def _chosen(_context: click.Context, _parameter: click.Parameter, value: str) -> Sequence[str]:
    names = [name for name in value.split(",") if name]
    if unknown := [name for name in names if name not in PARTS]:
        raise click.BadParameter(f"unknown: {', '.join(unknown)}; known: {', '.join(PARTS)}")
    return names


@click.command()
@click.option("--parts", default=",".join(PARTS), show_default=True, callback=_chosen)
def main(parts: Sequence[str]) -> None:
    """Measure the parts, and print the figures with their bars."""
    verdicts: list[Verdict] = []
    directory = chosen_directory()
    if "speed" in parts:
        with installation(directory, workers=2) as on:
            verdicts += measure_speed(on)
    if "readiness" in parts:
        verdicts += measure_readiness(directory)
    others = [name for name in parts if name in MEASURES]
    if others:
        with installation(None, workers=2, username=MEMBER) as on:
            for name in others:
                verdicts += MEASURES[name](on)
    for verdict in verdicts:
        click.echo(str(verdict))
    sys.exit(0 if all(verdict.ok for verdict in verdicts) else 1)


if __name__ == "__main__":
    main()
