"""The transport of real clouds: a session of keystoneauth1 and a connection of openstacksdk."""

from __future__ import annotations

from typing import Any, Final

from orchestrator.clients.openstack.errors import translated_failures
from orchestrator.clients.openstack.transport import Answer, Request
from orchestrator.errors import Misconfigured

USER_AGENT: Final = "stack-orchestrator"
MISSING_EXTRA: Final = "openstacksdk is not installed: pip install 'stack-orchestrator[openstack]'"
PROXIES: Final = {"block-storage": "block_storage"}  # attributes of a connection, if not the service's type


class SessionTransport:
    """Sends requests with the token of a session, to the endpoints in a region."""

    def __init__(self, session: Any, region: str) -> None:
        """Send no request yet.

        Raises:
            Misconfigured: openstacksdk is not installed.
        """
        try:
            from openstack.connection import Connection  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise Misconfigured(MISSING_EXTRA) from error
        session.user_agent = USER_AGENT
        self._connection = Connection(session=session, region_name=region or None)

    def send(self, request: Request, seconds: float) -> Answer:
        """Return the answer of a service."""
        headers = dict(request.headers)
        with translated_failures(request.service):
            response = self._proxy(request.service_type).request(
                request.target,
                request.method,
                json=request.body,
                **({} if request.content is None else {"data": request.content}),
                headers=headers,
                microversion=request.microversion,
                timeout=seconds,
                raise_exc=False,
            )
            return Answer(response.status_code, response.headers, response.content)

    def versions(self, service: str, service_type: str, seconds: float) -> tuple[str, str]:  # noqa: ARG002
        """Return the lowest and the highest microversion of a service."""
        with translated_failures(service):
            data = self._proxy(service_type).get_endpoint_data()
            if data is None or not data.max_microversion:
                return "", ""
            return _text(data.min_microversion), _text(data.max_microversion)

    def _proxy(self, service_type: str) -> Any:
        return getattr(self._connection, PROXIES.get(service_type, service_type))


def _text(version: Any) -> str:
    return ".".join(str(part) for part in version or ())
