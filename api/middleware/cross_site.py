"""Requests that a browser sends for a page of another site, recognized by Sec-Fetch-Site and Origin.

Clients other than browsers send neither header. A browser sends them with every request that a page causes,
and a page cannot change them. CloudFormation queries count as changes with every method, since their action
is a parameter.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from flask import Request
from werkzeug.exceptions import UnsupportedMediaType

from api.middleware.api_version import QUERY_PATH
from orchestrator.browser_requests import foreign_header, is_loopback_name, is_own, names_in
from orchestrator.config import Settings
from orchestrator.errors import Forbidden

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
AMBIENT_MODES: Final = frozenset({"none", "basic"})  # a browser adds the credentials, if any, on its own
JSON: Final = "application/json"
MAX_QUOTED: Final = 100  # characters of a header that an error message quotes


def require_own_site(request: Request, settings: Settings) -> None:
    """Check that no page of another site caused a change.

    If a browser adds the credentials on its own, requests that only read are checked too, except for
    links that a user follows: a page could otherwise infer facts from the status.

    Raises:
        Forbidden: the request comes from another site that is not allowed.
    """
    origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
    is_query = QUERY_PATH in request.environ
    if origin is None and site is None:
        if is_query and settings.auth == "none":
            _require_distinguishable(request)
        return
    if request.method in SAFE_METHODS and not is_query and not _is_read_by_page(request, settings):
        return
    if origin is not None and origin.lower() in _origins(settings.allowed_origins):
        return
    foreign = foreign_header(request.host, origin, site, trusts_site=settings.auth != "none")
    if foreign:
        raise _cross_site(foreign)


def require_own_page(request: Request, settings: Settings) -> None:
    """Check that a page of this server sent a request that changes something.

    Browsers send Origin or Sec-Fetch-Site with each such request, so a request without both is rejected.

    Raises:
        Forbidden: it has neither header, or comes from a page of another origin.
    """
    require_own_site(request, settings)
    origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
    if site is None and (origin is None or not is_own(origin, request.host)):
        raise _cross_site(f"Origin: {origin or 'missing'}")
    if site not in {None, "same-origin"}:
        raise _cross_site(f"Sec-Fetch-Site: {site}")


def require_json_type(request: Request, settings: Settings) -> None:
    """Check that a body has the type JSON if a browser adds the credentials on its own.

    A page can send other types to another site without asking that site (a preflight request). Queries and
    signed URLs are exempt: they have forms and arbitrary bodies.

    Raises:
        UnsupportedMediaType: the body has another type, or none.
    """
    if request.method in SAFE_METHODS or settings.auth not in AMBIENT_MODES or request.blueprint == "cfn":
        return
    has_body = request.content_length or "Transfer-Encoding" in request.headers
    if has_body and request.mimetype != JSON:
        given = request.mimetype[:MAX_QUOTED] or "missing"
        raise UnsupportedMediaType(
            f"A request body requires the header Content-Type: {JSON}; the Content-Type is {given}."
        )


def _is_read_by_page(request: Request, settings: Settings) -> bool:
    """Whether a page reads with credentials that its browser adds, other than by a link."""
    if settings.auth not in AMBIENT_MODES or request.method == "OPTIONS":
        return False
    by_link = request.headers.get("Sec-Fetch-Mode") == "navigate"
    return not (by_link and request.headers.get("Sec-Fetch-Dest") == "document")


def _require_distinguishable(request: Request) -> None:
    """Check that a query without authentication would have Sec-Fetch-Site if a browser had sent it.

    Browsers omit the header for names other than loopback without TLS, and Origin with the method GET.

    Raises:
        Forbidden: it might not have the header.
    """
    if request.method in SAFE_METHODS and not (request.is_secure or is_loopback_name(request.host)):
        raise Forbidden(
            "Without authentication, a query for a name other than localhost must use the method POST."
        )


@lru_cache
def _origins(text: str) -> frozenset[str]:
    return frozenset(origin.rstrip("/") for origin in names_in(text))


def _cross_site(header: str) -> Forbidden:
    return Forbidden(
        f"Cross-site request rejected ({header[:MAX_QUOTED]}): a browser sent it for a page of another "
        "origin. Allowed origins are set in ORCHESTRATOR_ALLOWED_ORIGINS."
    )
