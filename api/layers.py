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


def trusted_proxies(app: Wsgi, state: AppState) -> Wsgi:
    """Apply the headers of trusted proxies and no others."""
    return TrustedProxies(app, state.dependencies.settings)


def access_log(app: Wsgi, _state: AppState) -> Wsgi:
    """Log each request, including those that a later layer rejects."""
    return Logged(app)


def response_headers(app: Wsgi, _state: AppState) -> Wsgi:
    """Add the headers of every response."""
    return ResponseHeaders(app)


def local_requests(app: Wsgi, state: AppState) -> Wsgi:
    """Reject requests from elsewhere if the API has no authentication, or a simulated cloud."""
    settings = state.dependencies.settings
    needed = settings.auth == "none" or settings.simulated_cloud
    return LocalRequests(app, settings) if needed else app


def in_flight(app: Wsgi, state: AppState) -> Wsgi:
    """Count concurrent requests by caller and project."""
    return InFlight(app, state.dependencies.settings)


def turns(app: Wsgi, _state: AppState) -> Wsgi:
    """Compute responses in turns of their projects."""
    return Turns(app)


def web_applications(app: Wsgi, state: AppState) -> Wsgi:
    """Pass requests to the console and similar applications, whose calls enter at the next layer."""
    return mounted(app, state)


def signal_fast_path(app: Wsgi, state: AppState) -> Wsgi:
    """Answer regular signals."""
    return SignalFastPath(state, app)


def version_prefix(app: Wsgi, _state: AppState) -> Wsgi:
    """Move the version of the API from the path to the mount point."""
    return Versioned(app)


WSGI_LAYERS: Final[tuple[Layer, ...]] = (
    trusted_proxies,
    access_log,
    response_headers,
    local_requests,
    in_flight,
    turns,
    web_applications,
    signal_fast_path,
    version_prefix,
)
