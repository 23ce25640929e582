"""Requests to the services of a cloud, as the orchestrator or the simulated cloud counts them."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

import httpx

from simulated_openstack import request_counts

LINE: Final = re.compile(
    r"^orchestrator_provider_request_duration_seconds_count\{(?P<labels>[^}]*)\} (?P<value>\S+)", re.MULTILINE
)
LABEL: Final = re.compile(r'(\w+)="([^"]*)"')


def requests_sent(url: str) -> Counter[tuple[str, str]]:
    """Return the number of requests since the start, by service and method."""
    text = httpx.get(f"{url}/metrics", timeout=60.0, trust_env=False).text
    result: Counter[tuple[str, str]] = Counter()
    for found in LINE.finditer(text):
        labels = dict(LABEL.findall(found["labels"]))
        result[labels["service"], labels["method"]] += int(float(found["value"]))
    return result


def requests_received(auth_url: str) -> Counter[tuple[str, str]]:
    """Return the number of requests that the simulated cloud has received, by service and method: without
    those to Keystone, and without those for the description of a service's versions.
    """
    address = auth_url.removesuffix("/v3") + request_counts.PATH
    rows = httpx.get(address, timeout=60.0, trust_env=False).json()["requests"]
    result: Counter[tuple[str, str]] = Counter()
    for row in rows:
        if row["service"] != "keystone" and "/" in row["path"].strip("/"):
            result[row["service"], row["method"]] += row["count"]
    return result


def shown(counts: Counter[tuple[str, str]], each: int) -> str:
    """Return counts as text, with the number for each of `each` servers."""
    parts = [
        f"{service} {method} {count} ({count / each:.2f})"
        for (service, method), count in sorted(counts.items())
        if count
    ]
    return ", ".join(parts)
