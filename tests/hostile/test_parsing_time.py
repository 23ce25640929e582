"""The processor time of a parsing process is limited; beyond it, the request is refused."""

from __future__ import annotations

import resource
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from orchestrator.config import Settings
from orchestrator.errors import LimitExceeded
from orchestrator.operations import offload, planner_process
from orchestrator.operations.context import OperationContext
from orchestrator.resources.registry import load_registry
from orchestrator.security.caller import Caller
from orchestrator.security.encryption import Cipher, new_key
from orchestrator.store.connections.database import Database
from tests import constants

SETTINGS = Settings()


@pytest.fixture
def context(new_database: Callable[[], str]) -> OperationContext:
    constants.replace_for_test({"max_parsing_processes": 1})
    offload.preload_forkserver()
    return OperationContext(
        Database(new_database()), Cipher([new_key()]), Caller("p"), SETTINGS, load_registry()
    )


def compute_forever(_job: object, _answer: Connection) -> None:
    while True:
        pass


def answer_at_once(_job: object, answer: Connection) -> None:
    answer.send(resource.getrlimit(resource.RLIMIT_CPU)[0])


def test_a_request_that_computes_too_long_is_refused_and_its_slot_is_free_again(
    context: OperationContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offload, "BASE_CPU_SECONDS", 1)
    with pytest.raises(LimitExceeded, match="needs more than 1 seconds of processor time"):
        offload._run_in_subprocess(context, None, compute_forever, 0)
    monkeypatch.setattr(offload, "BASE_CPU_SECONDS", 60)
    assert offload._run_in_subprocess(context, None, answer_at_once, 0) >= 60


def test_the_time_grows_with_the_size(context: OperationContext, tmp_path: Path) -> None:
    body = tmp_path / "body"
    body.write_bytes(b"x" * (8 << 20))
    first = offload._run_in_subprocess(context, None, answer_at_once, 0)
    assert offload._run_in_subprocess(context, body, answer_at_once) - first == pytest.approx(16, abs=1)
    assert offload.cpu_seconds(Settings().max_json_body_size) < offload.ANSWER_SECONDS
    assert planner_process.CPU_SECONDS > offload.ANSWER_SECONDS
