"""The client of the noisy cloud. It stands for the SDK of a real cloud and has exceptions of its own."""

from __future__ import annotations

import http.client
import json
import os
from typing import Any
from urllib.parse import urlsplit


class CloudError(Exception):
    """The service rejected the request."""


class NotFound(CloudError):
    """The object does not exist."""


class ServiceUnavailable(CloudError):
    """The service rejects all requests for the moment, or cannot be reached."""


class OverQuota(CloudError):
    """The tenant has no capacity left."""


class NoAnswer(CloudError):
    """The service did not answer; it may have performed the request."""


STATUS_ERRORS: dict[int, type[CloudError]] = {
    404: NotFound,
    429: OverQuota,
    503: ServiceUnavailable,
    504: NoAnswer,
}


def request(
    tenant: str, service: str, verb: str, id: str = "", *, seconds: float = 20.0, **body: Any
) -> dict[str, Any]:
    """Send a request to a service and return its answer.

    Raises:
        CloudError: an error of the service, as a subclass.
    """
    host = urlsplit(os.environ["NOISY_CLOUD"]).netloc
    connection = http.client.HTTPConnection(host, timeout=seconds)
    path = "/".join(("", tenant, service, verb, *([id] if id else [])))
    try:
        connection.connect()
    except OSError as error:
        raise ServiceUnavailable(f"{service}: {error}") from error
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        read: dict[str, Any] = json.loads(answer.read())
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswer(f"{service}: {error}") from error
    finally:
        connection.close()
    if answer.status >= 400:
        error_type = STATUS_ERRORS.get(answer.status, CloudError)
        raise error_type(f"{service} answered {answer.status} to {verb}: {read.get('error')}")
    return read
