"""Configuration file of Flower for `orchestrator up`: requests for foreign host names receive 421.

Flower has no password on a single machine. Without this check, a web page that gives its own name the address
of this machine (DNS rebinding) could read the names of stacks and resources. Tornado executes this file.
"""

from __future__ import annotations

from typing import Any

from flower.app import Flower
from tornado.web import ErrorHandler

from orchestrator.browser_requests import is_loopback_name

_find_handler = Flower.find_handler


def _find_local_handler(self: Any, request: Any, **options: Any) -> Any:
    if is_loopback_name(request.host):
        return _find_handler(self, request, **options)
    return self.get_handler_delegate(request, ErrorHandler, {"status_code": 421})


Flower.find_handler = _find_local_handler
