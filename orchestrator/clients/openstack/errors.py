"""Failures of OpenStack's services as errors of a provider.

The errors state the fate of the request (docs/plugins.md, "Facts and errors"): refused, refused
temporarily, not sent, or sent and not answered. Messages come from the service, with the HTTP status, the
name of the service and the id of the request, so that an operator finds it in the logs of the service.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpcore

from orchestrator.clients.openstack.sdk import sdk_exception
from orchestrator.errors import (
    ProviderBusy,
    ProviderConflict,
    ProviderError,
    ProviderFailed,
    ProviderGatewayFailed,
    ProviderNotFound,
    ProviderQuotaExceeded,
    ProviderSilent,
    ProviderUnreachable,
)

# Names of the classes that Heat's clients raise; they begin the reasons of failed resources.
KINDS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    412: "PreconditionFailed",
    413: "OverLimit",
    429: "TooManyRequests",
    501: "HTTPNotImplemented",
}
# nova and octavia answer 403, cinder 413, neutron 409; their texts have this in common.
QUOTA: Final = re.compile(
    r"quota exceeded|exceeded for quota|exceeds? allowed|quota .*exceeded|over ?quota|quota has been met",
    re.IGNORECASE,
)
INTERNAL_ERROR: Final = 500  # of the service itself; gateways answer 502 or 504 while it continues
NOT_IMPLEMENTED: Final = 501  # final: a provider of octavia does not support an option
MAX_MESSAGE: Final = 1_000  # characters of a service's message
MAX_RETRY_AFTER: Final = 300.0  # seconds


def error_of(service: str, status: int, headers: Any, body: Any) -> ProviderError:
    """Return the error that an answer reports; `body` is its JSON, or its text."""
    text = _message(body) or f"{service} answered {status}"
    request_id = headers.get("x-openstack-request-id") or headers.get("x-compute-request-id")
    message = with_request_id(f"{text} (HTTP {status} from {service})", request_id)
    retry_after = retry_after_seconds(headers.get("retry-after"))
    if status in (403, 409, 413) and QUOTA.search(text):
        return ProviderQuotaExceeded(message, KINDS[status])
    if status in (429, 503) or (status == 413 and retry_after is not None):
        return ProviderBusy(message, KINDS.get(status, "ServiceUnavailable"), retry_after=retry_after)
    if status == INTERNAL_ERROR:
        return ProviderFailed(message, "HttpServerError")
    if status > INTERNAL_ERROR and status != NOT_IMPLEMENTED:
        return ProviderGatewayFailed(message, "HttpServerError")
    kind = KINDS.get(status, "HttpException")
    if status == 404:
        return ProviderNotFound(message, kind)
    if status == 409:
        return ProviderConflict(message, kind)
    return ProviderError(message, kind)


def with_request_id(message: str, request_id: str | None) -> str:
    """Return a message with the id of the service's request, by which an operator finds it in the logs."""
    return f"{message} (Request-ID: {request_id})" if request_id else message


class ReportedBy:
    """Names a service in the errors of the body that name none: login failures are keystone's."""

    __slots__ = ("_service",)

    def __init__(self, service: str) -> None:
        """Take the name of the service."""
        self._service = service

    def __enter__(self) -> None:
        """Begin the body."""

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        """Name the service in an error."""
        if isinstance(error, ProviderError):
            error.service = error.service or self._service


@contextmanager
def discovery_failures(service: str) -> Iterator[None]:
    """Translate failures of keystoneauth1 and openstacksdk before a request is sent to a service.

    Raises:
        ProviderUnreachable: Keystone or the service does not respond.
        ProviderError: Keystone rejects the credentials, or the service has no endpoint.
    """
    sdk_error = sdk_exception()
    from keystoneauth1 import exceptions  # noqa: PLC0415 - an extra

    try:
        yield
    except (exceptions.EndpointNotFound, exceptions.CatalogException) as error:
        raise ProviderError(f"the catalog has no service {service}: {error}", "EndpointNotFound") from error
    except (exceptions.http.Unauthorized, exceptions.http.Forbidden, exceptions.http.NotFound) as error:
        message = f"the stack's credentials are no longer valid: {error.message}"
        raise ProviderError(message, "AuthorizationFailure") from error
    except (exceptions.ClientException, sdk_error) as error:
        raise ProviderUnreachable(f"{service} does not describe its versions: {error}") from error


@contextmanager
def exchange_failures(service: str) -> Iterator[None]:
    """Translate failures of an exchange with a service.

    Raises:
        ProviderUnreachable: nothing was sent.
        ProviderSilent: the request may have been carried out.
    """
    try:
        yield
    except (httpcore.ConnectError, httpcore.ConnectTimeout, httpcore.UnsupportedProtocol) as error:
        raise ProviderUnreachable(f"{service}: {_reason(error)}", "ConnectionError") from error
    except httpcore.TimeoutException as error:
        raise ProviderSilent(f"{service} did not answer in time", "Timeout") from error
    except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
        raise ProviderSilent(f"{service} did not answer: {_reason(error)}", "ConnectionError") from error


def retry_after_seconds(value: str | None) -> float | None:
    """Return the seconds that a `Retry-After` header asks for, at most MAX_RETRY_AFTER; None without one."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
        except (TypeError, ValueError):
            return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER)


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _details(errors: Any) -> str:
    """Return the faults in a refused object, which designate lists."""
    listed = errors.get("errors") if isinstance(errors, dict) else errors
    if not isinstance(listed, list):
        return ""
    faults = [one for one in listed if isinstance(one, dict) and one.get("message")]
    places = ("/".join(str(part) for part in one.get("path") or ()) for one in faults)
    texts = [f"{place}: {one['message']}" for place, one in zip(places, faults, strict=True)]
    return f": {'; '.join(texts)[:MAX_MESSAGE]}" if texts else ""


def _message(body: Any) -> str:
    """Return the message in the body of an error: each service wraps it in its own object."""
    if isinstance(body, dict):
        for key in ("NeutronError", "error", "faultstring", "message", "description"):
            if key in body:
                return _message(body[key]) + _details(body.get("errors"))
        inner = next((value for value in body.values() if isinstance(value, dict)), None)
        return "" if inner is None else _message(inner)
    if isinstance(body, list):
        return _message(body[0]) if body else ""
    return re.sub(r"<[^>]+>", " ", str(body or ""))[:MAX_MESSAGE].strip()
