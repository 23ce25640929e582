"""The refusal of requests that a web page may have caused."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Final

from simulated_openstack.http import JSON, REASONS, Request, Response

MAX_QUOTED: Final = 100  # characters of a header that an error message quotes
_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?", re.IGNORECASE)


def page_refusal(request: Request) -> Response | None:
    """Return the refusal of a request that a web page may have caused; None for those of other clients.

    A page can give its own name the address of this machine, and send some bodies to other sites without
    asking them. Only a request without a token is of use to it: no page knows a token.
    """
    headers = request.headers
    host = headers.get("host")
    if host is not None and not _is_loopback_name(host):
        return _refused(421, "The simulated cloud serves loopback names only, such as localhost.")
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if site not in {None, "none", "same-origin"}:
        return _refused(403, f"Cross-site request rejected (Sec-Fetch-Site: {site}).")
    if origin is not None and origin.lower() != f"http://{host or ''}".lower():
        return _refused(403, f"Cross-site request rejected (Origin: {origin[:MAX_QUOTED]}).")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    # A browser asks a site before it sends other methods with a body, such as PUT to a temporary URL.
    is_simple = request.method == "POST" and request.content and "x-auth-token" not in headers
    if is_simple and kind != JSON:
        return _refused(415, f"A request body without a token requires the header Content-Type: {JSON}.")
    return None


def _is_loopback_name(host: str) -> bool:
    """Whether a header Host has a loopback address or a name that browsers resolve to one.

    The domain `localhost` is reserved (RFC 6761), so that no DNS server can redirect it.
    """
    match = _HOST.fullmatch(host)
    if match is None:
        return False
    name = match.group(1).lower().removesuffix(".").strip("[]")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:  # a name, which may resolve to any address
        return False


def _refused(status: int, message: str) -> Response:
    return Response(status, {"error": {"code": status, "title": REASONS[status], "message": message}})
