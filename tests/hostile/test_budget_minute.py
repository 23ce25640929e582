"""A minute of each attack on budgets and quotas on a complete server: other projects keep their speed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner
from werkzeug.security import generate_password_hash

from orchestrator.cli.main import main
from tests.e2e.running import Up
from tests.hostile import attacks
from tests.hostile.flood import Client, Flood
from tests.hostile.minute import (
    HANDLE,
    IDLE_SECONDS,
    SECONDS,
    Project,
    Times,
    attack_and_compare,
    basic,
    require_kept,
    require_recovered,
)
from tests.hostile.minute import template as large_template
from tests.integration.served_api import answer, status

pytestmark = pytest.mark.long

MAX_STACKS = 25
READ_RESOURCES = 10_000  # of a stack whose events are read: 20,000 events

Prepare = Callable[[Project], tuple[Client, int]]  # the client and the number of clients


def nested_outputs(attacker: Project) -> tuple[Client, int]:
    path = attacker.create(f"s{time.monotonic_ns()}", attacks.nested_outputs())
    return partial(attacks.read, path), 24


def large_values(attacker: Project) -> tuple[Client, int]:
    return partial(attacks.large_values, attacker.stacks_path), 4


def large_signals(attacker: Project) -> tuple[Client, int]:
    path = attacker.create(f"s{time.monotonic_ns()}", HANDLE)
    return partial(attacks.large_signals, f"{path}/resources/handle"), 8


def large_validations(attacker: Project) -> tuple[Client, int]:
    return partial(attacks.large_validations, attacker.name), 20


def expensive_expressions(attacker: Project) -> tuple[Client, int]:
    path = attacker.create(f"s{time.monotonic_ns()}", attacks.expensive_outputs(time.monotonic_ns()))
    return partial(attacks.expensive_expressions, attacker.name, path), 12


def many_stacks(attacker: Project) -> tuple[Client, int]:
    return partial(attacks.many_stacks, attacker.stacks_path), 8


def large_stacks(attacker: Project) -> tuple[Client, int]:
    return partial(attacks.large_stacks, attacker.stacks_path), 6


def large_reads(attacker: Project) -> tuple[Client, int]:
    """Lists and streams of all events of a stack with many resources, and previews of a large group."""
    path = attacker.create(f"s{time.monotonic_ns()}", large_template(READ_RESOURCES), seconds=600.0)
    return partial(attacks.large_reads, attacker.stacks_path, path), 16


def slow_previews(attacker: Project) -> tuple[Client, int]:
    return partial(attacks.slow_previews, attacker.stacks_path), 4


def foreign_pages(attacker: Project) -> tuple[Client, int]:
    return partial(attacks.foreign_pages, attacker.stacks_path), 6  # connections of a browser


def hostile_filters(attacker: Project) -> tuple[Client, int]:
    return partial(attacks.hostile_filters, attacker.name), 4


def hostile_patterns(attacker: Project) -> tuple[Client, int]:
    return partial(attacks.hostile_patterns, attacker.stacks_path), 4


def hostile_acceptances(attacker: Project) -> tuple[Client, int]:
    attacker.create("accepted", HANDLE)
    return partial(attacks.hostile_acceptances, attacker.name), 4


def hanging_resources(attacker: Project) -> tuple[Client, int]:
    return partial(attacks.hanging_resources, attacker.stacks_path), 2


@pytest.mark.parametrize(
    "prepare",
    [
        nested_outputs,
        large_values,
        large_signals,
        large_validations,
        expensive_expressions,
        many_stacks,
        large_stacks,
        large_reads,
        slow_previews,
        foreign_pages,
        hostile_filters,
        hostile_patterns,
        hostile_acceptances,
        hanging_resources,
    ],
)
def test_another_project_keeps_its_speed(
    prepare: Prepare, attacker: Project, victim: Project, idle: Times
) -> None:
    client, clients = prepare(attacker)
    flood = Flood(attacker.port, client, clients, attacker.headers)
    try:
        attack_and_compare(flood, attacker, victim, idle)
    finally:
        print("statuses of the attacker", flood.statuses)


def test_stored_bytes_end_at_the_quota(attacker: Project, victim: Project, idle: Times) -> None:
    set_quota(attacker, "stored_bytes", str(50 * 1024**2))
    flood = Flood(attacker.port, partial(attacks.large_files, attacker.stacks_path), 2, attacker.headers)
    try:
        with flood:
            attacked = victim.work(SECONDS)
        fill(attacker, lambda number: attacks.large_files(attacker.stacks_path, number))
        require_kept(idle, attacked, victim.work(IDLE_SECONDS / 2))
    finally:
        set_quota(attacker, "stored_bytes", "default")
        print("statuses of the attacker", flood.statuses)
    require_recovered(attacker)


def test_stacks_end_at_the_quota(attacker: Project, victim: Project, idle: Times) -> None:
    attacker.delete_stacks()
    set_quota(attacker, "stacks", "21")
    flood = Flood(attacker.port, partial(attacks.many_stacks, attacker.stacks_path), 40, attacker.headers)
    try:
        with flood:
            attacked = victim.work(SECONDS)
        fill(attacker, lambda number: attacks.many_stacks(attacker.stacks_path, number))
        assert len(attacker.stacks()) == 21
        require_kept(idle, attacked, victim.work(IDLE_SECONDS / 2))
    finally:
        set_quota(attacker, "stacks", "default")
        print("statuses of the attacker", flood.statuses)
    require_recovered(attacker)


def fill(project: Project, requests: Callable[[int], attacks.Requests]) -> None:
    """Create stacks until one is refused, in case that the flood had too little processor time."""
    for number in range(MAX_STACKS):
        request = next(requests(number))
        head = project.head(request.method, request.path, length=len(request.body or b""))
        if status(answer(project.port, head + (request.body or b""), seconds=90)) == 400:
            return
    raise AssertionError(f"{MAX_STACKS} further stacks were accepted")


def set_quota(project: Project, name: str, value: str) -> None:
    """Set a limit of a project, on the server."""
    command = ("quota", "set", "--project", project.name, f"{name}={value}")
    CliRunner().invoke(main, [*command, "--data-dir", str(project.up.data_dir)], catch_exceptions=False)


@pytest.fixture
def basic_up(tmp_path: Path) -> Iterator[Up]:
    users = tmp_path / "users.yaml"
    names = ("attacker", "victim")
    lines = [f"{name}: {{password: '{generate_password_hash(name)}', project: {name}}}" for name in names]
    users.write_text(f"users: {{{', '.join(lines)}}}\n")
    env = {"ORCHESTRATOR_AUTH": "basic", "ORCHESTRATOR_USERS_FILE": str(users)}
    up = Up(tmp_path / "data", env=env)
    up.wait_ready(120)
    yield up
    up.stop()


def test_wrong_passwords_delay_no_other_user(basic_up: Up) -> None:
    attacker = Project(basic_up, "attacker", basic("attacker", "attacker"))
    victim = Project(basic_up, "victim", basic("victim", "victim"))
    victim.work(2.0)
    idle = victim.work(IDLE_SECONDS)
    client = partial(attacks.wrong_passwords, attacker.stacks_path, "victim")
    flood = Flood(basic_up.port, client, 32, {"Host": "localhost"})
    try:
        attack_and_compare(flood, attacker, victim, idle)
    finally:
        print("statuses of the attacker", flood.statuses)
