"""The WSGI layers around the application, in the order that a request passes them.

docs/internals/threat-model.md has the same list, with the reason of each place.
"""

from __future__ import annotations

from typing import Final

from api.dependencies import AppState, Layer, Wsgi
from api.middleware.access_log import Logged
from api.middleware.api_version import Versioned
from api.middleware.in_flight import InFlight
from api.middleware.local_requests import LocalRequests
from api.middleware.proxies import TrustedProxies
from api.middleware.response_headers import ResponseHeaders
from api.middleware.signal_fast_path import SignalFastPath
from api.middleware.turns import Turns
from api.web_applications import mounted


def _local_requests(app: Wsgi, state: AppState) -> Wsgi:
    settings = state.dependencies.settings
    return LocalRequests(app, settings) if settings.auth == "none" or state.dependencies.local else app


WSGI_LAYERS: Final = (
    Layer("trusted_proxies", lambda app, state: TrustedProxies(app, state.dependencies.settings)),
    Layer("access_log", lambda app, _: Logged(app)),
    Layer("response_headers", lambda app, _: ResponseHeaders(app)),
    Layer("local_requests", _local_requests),
    Layer("in_flight", lambda app, state: InFlight(app, state.dependencies.settings)),
    Layer("turns", lambda app, _: Turns(app)),
    Layer("web_applications", mounted),
    Layer("signal_fast_path", lambda app, state: SignalFastPath(state, app)),
    Layer("version_prefix", lambda app, _: Versioned(app)),
)
