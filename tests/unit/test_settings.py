"""The settings are those of the table in docs/operations.md, and their values are checked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from orchestrator.config import DEFAULT_QUOTAS, DEFAULT_RETENTION, HEAT_QUOTAS, Settings

DOCS = Path(__file__).parents[2] / "docs" / "operations.md"


def test_the_table_of_settings_lists_every_setting_with_the_reason_to_change_it():
    table = DOCS.read_text().partition("| `ORCHESTRATOR_…` |")[2].partition("\n\n")[0]
    rows = [line.split(" | ") for line in table.splitlines()[2:]]
    assert {len(row) for row in rows} == {4}
    names = [name.lower() for row in rows for name in re.findall(r"`([A-Z_]+)`", row[0])]
    assert sorted(names) == sorted(Settings.model_fields)


def test_quotas_and_retention_change_single_values(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ORCHESTRATOR_QUOTAS", "stacks=5, requests_per_second=0.5")
    monkeypatch.setenv("ORCHESTRATOR_RETENTION", "events=60")
    settings = Settings()
    assert settings.quotas == {**DEFAULT_QUOTAS, "stacks": 5, "requests_per_second": 0.5}
    assert settings.retention == {**DEFAULT_RETENTION, "events": 60}


def test_the_quotas_of_heat_are_chosen_with_its_limits():
    assert Settings(limits="heat", quotas={"stacks": 5}).quotas == {
        **DEFAULT_QUOTAS,
        **HEAT_QUOTAS,
        "stacks": 5,
    }


@pytest.mark.parametrize("given", ["stacks", "stacks=many", "stakcs=5", "stacks=-2"])
def test_a_wrong_quota_is_refused(given: str):
    with pytest.raises(ValidationError, match="quotas"):
        Settings(quotas=given)
