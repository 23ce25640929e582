"""The settings of `orchestrator up --cloud simulated`."""

from __future__ import annotations

import pytest

from orchestrator.embedded import simulated_cloud
from orchestrator.errors import Misconfigured


@pytest.mark.parametrize(
    ("missing", "text"),
    [
        ("simulated_openstack", r"pip install \./packages/simulated-openstack"),
        ("openstack", r"pip install 'stack-orchestrator\[openstack\]'"),
    ],
)
def test_a_missing_package_is_named(missing: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_cloud, "find_spec", lambda name: None if name == missing else object())
    with pytest.raises(Misconfigured, match=text):
        simulated_cloud.settings_of(18_300, "x")
