"""Former names of settings: accepted, with the current name taking precedence, and logged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.config import DEPRECATED_NAMES, PREFIX, Settings, deprecated_settings


@pytest.mark.parametrize(("old", "new"), DEPRECATED_NAMES.items())
def test_a_former_name_sets_the_current_setting(monkeypatch: pytest.MonkeyPatch, old: str, new: str):
    value = "true" if isinstance(Settings.model_fields[new].default, bool) else "7"
    monkeypatch.setenv(f"{PREFIX}{old.upper()}", value)
    assert getattr(Settings(), new) == (True if value == "true" else 7)
    assert deprecated_settings({f"{PREFIX}{old.upper()}": value}) == [
        (f"{PREFIX}{old.upper()}", f"{PREFIX}{new.upper()}")
    ]


def test_the_current_name_takes_precedence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ORCHESTRATOR_RING_WINDOW", "7")
    monkeypatch.setenv("ORCHESTRATOR_DISPATCH_WINDOW", "9")
    assert Settings().dispatch_window == 9


def test_a_former_name_may_come_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "value").write_text("7\n")
    monkeypatch.setenv("ORCHESTRATOR_RING_WINDOW_FILE", str(tmp_path / "value"))
    assert Settings().dispatch_window == 7


def test_a_former_name_is_accepted_as_an_argument():
    assert Settings(ring_window=7).dispatch_window == 7


def test_the_former_value_of_limits_is_accepted():
    assert Settings(limits="ours").limits == "default"


def test_a_former_name_is_logged():
    code = "from orchestrator.logs import configure_logs; configure_logs(json=True)"
    env = {"ORCHESTRATOR_RING_WINDOW": "7", "PATH": ""}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert '"event":"setting_deprecated"' in run.stderr
    assert '"setting":"ORCHESTRATOR_RING_WINDOW"' in run.stderr
    assert '"replacement":"ORCHESTRATOR_DISPATCH_WINDOW"' in run.stderr
