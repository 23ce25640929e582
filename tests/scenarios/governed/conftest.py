"""An installation whose policy governs types."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios.fake_cloud import Cloud
from tests.scenarios.governed.governed_world import POLICY, GovernedWorld


@pytest.fixture
def world(postgres_url: str, cloud: Cloud, tmp_path: Path) -> Iterator[GovernedWorld]:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    made = GovernedWorld(
        postgres_url,
        types=cloud.types(),
        policy_file=path,
        enable_stack_abandon=True,
        enable_stack_adopt=True,
    )
    yield made
    made.close()
