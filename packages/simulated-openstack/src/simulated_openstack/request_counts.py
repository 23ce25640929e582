"""The numbers of the requests that the cloud has received: `GET /simulated/requests` of Keystone's port.

For tests and benchmarks: several processes may send requests, and their sum is here.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from simulated_openstack.http import Request, Response

PATH: Final = "/simulated/requests"
_ID: Final = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}")


class RequestCounts:
    """Requests by service, method and path, with `{id}` in place of ids in a path."""

    def __init__(self) -> None:
        """Start with none."""
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def record(self, service: str, request: Request) -> None:
        """Count a request."""
        self._counts[service, request.method, _ID.sub("{id}", request.path)] += 1

    @property
    def total(self) -> int:
        """The number of all requests."""
        return self._counts.total()

    @property
    def response(self) -> Response:
        """The answer to a request for the counts."""
        keys = ("service", "method", "path", "count")
        rows = [dict(zip(keys, (*key, count), strict=True)) for key, count in sorted(self._counts.items())]
        return Response(200, {"requests": rows})
