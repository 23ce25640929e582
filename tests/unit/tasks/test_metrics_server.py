"""The metrics page of a worker: its readers, and its contents."""

from __future__ import annotations

import re

import httpx
import pytest

from orchestrator import metrics
from orchestrator.config import Settings
from orchestrator.errors import Misconfigured
from tasks.metrics_server import require_protected_metrics, serve

LOST = re.compile(r"^orchestrator_leases_lost_total (\S+)$", re.MULTILINE)


def test_a_worker_serves_what_it_has_counted_and_only_that_page() -> None:
    before = float(LOST.search(metrics.exposition().decode())[1])
    metrics.count_visit("Test::Of::Figures", "create", "ready")
    metrics.observe_check("check", 0.002)
    metrics.count_recovered("lease_lost", 3)
    server = serve(Settings(metrics_address="127.0.0.1:9871"))
    assert server is not None
    try:
        text = httpx.get("http://127.0.0.1:9871/metrics").raise_for_status().text
        assert 'orchestrator_checks_total{outcome="ready",step="create",type="Test::Of::Figures"} 1.0' in text
        assert float(LOST.search(text)[1]) == before + 3
        assert 'orchestrator_check_duration_seconds_bucket{le="0.0025",queue="check"}' in text
        assert httpx.get("http://127.0.0.1:9871/").status_code == 404
    finally:
        server.shutdown()
        server.server_close()


def test_with_a_token_figures_are_for_who_has_it() -> None:
    server = serve(Settings(metrics_address="127.0.0.1:9872", metrics_token="sesame"))
    assert server is not None
    try:
        place = "http://127.0.0.1:9872/metrics"
        assert httpx.get(place).status_code == 403
        assert httpx.get(place, headers={"Authorization": "Bearer of bad news"}).status_code == 403
        assert httpx.get(place, headers={"Authorization": "Bearer sesame"}).status_code == 200
    finally:
        server.shutdown()
        server.server_close()


def test_figures_are_not_served_to_the_world_without_a_token() -> None:
    with pytest.raises(Misconfigured, match="METRICS_TOKEN"):
        require_protected_metrics(Settings(metrics_address="0.0.0.0:9873"))
    require_protected_metrics(Settings(metrics_address="0.0.0.0:9873", metrics_token="sesame"))
    require_protected_metrics(Settings())


def test_without_a_port_or_with_one_that_is_taken_work_goes_on_without_figures() -> None:
    assert serve(Settings()) is None
    first = serve(Settings(metrics_address="127.0.0.1:9874"))
    assert first is not None
    try:
        assert serve(Settings(metrics_address="127.0.0.1:9874")) is None
    finally:
        first.shutdown()
        first.server_close()
