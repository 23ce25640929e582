"""Damage by an administrator, killed workers and stopped services, on the chosen cloud
(`acceptance/convergence.py`).
"""

from __future__ import annotations

import pytest

from qa.acceptance.convergence import SERVICES, SETTINGS, carry_out
from qa.acceptance.installation import chosen_directory, installation


@pytest.mark.long
@pytest.mark.timeout(7_200)
def test_each_fault_is_found_and_repaired_once() -> None:
    directory = chosen_directory()
    with installation(directory, settings=SETTINGS, workers=2) as on:
        found = carry_out(on, directory, servers=40, volumes=16, minutes=len(SERVICES), outage=30.0, seed=2)
    assert not found, "\n".join(found)
