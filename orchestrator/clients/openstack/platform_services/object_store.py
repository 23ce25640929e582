"""Swift's API: an account with containers, and their objects.

The description of a container is in the headers of the answers; their names are in lower case.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any, ClassVar, Final
from urllib.parse import quote, urlsplit

from orchestrator.clients.openstack.service_api import Headers, ServiceApi
from orchestrator.errors import ProviderNotFound

PAGE: Final = 100  # objects of a list
TEMPORARY_URL_KEY: Final = "x-account-meta-temp-url-key"
EXPIRES_AT: Final = 2**31 - 61  # seconds since 1970; Swift accepts no later time on all platforms


class ObjectStore(ServiceApi):
    """Swift, called as a credential. The endpoint in the catalog is the account of the project."""

    service: ClassVar[str] = "swift"
    service_type: ClassVar[str] = "object-store"

    def put_container(self, name: str, headers: Headers) -> None:
        """Create a container, or change the headers of an existing container; may be repeated."""
        self.exchange("PUT", _path(name), headers=_encoded(headers))

    def container(self, name: str) -> Mapping[str, str] | None:
        """Return the headers of a container, None if it does not exist."""
        try:
            return _decoded(self.exchange("HEAD", _path(name)).headers)
        except ProviderNotFound:
            return None

    def delete_container(self, name: str) -> bool:
        """Delete an empty container. Return whether it existed."""
        return self.delete(_path(name))

    def objects(self, name: str, limit: int = PAGE) -> list[str]:
        """Return the names of the first objects of a container; none if it does not exist."""
        query = {"format": "json", "limit": limit}
        answer = self.exchange("GET", _path(name), query=query, accepted=(404,))
        listed: Any = answer.json() if answer.status == 200 else ()
        return [str(item["name"]) for item in listed or ()]

    def put_object(self, container: str, name: str, content: bytes) -> None:
        """Store an object."""
        self.upload(_path(container, name), content)

    def object_content(self, container: str, name: str) -> bytes | None:
        """Return the content of an object, None if it does not exist."""
        try:
            return self.download(_path(container, name))
        except ProviderNotFound:
            return None

    def delete_object(self, container: str, name: str) -> bool:
        """Delete an object. Return whether it existed."""
        return self.delete(_path(container, name))

    def set_account_headers(self, headers: Headers) -> None:
        """Add metadata to the account of the project."""
        self.exchange("POST", "", headers=_encoded(headers))

    def account(self) -> Mapping[str, str]:
        """Return the headers of the account."""
        return _decoded(self.exchange("HEAD", "").headers)

    def temporary_url(self, container: str, name: str, method: str, proposed_key: str) -> str:
        """Return a URL that permits a method on an object without a token, practically for ever.

        The key of the signature belongs to the account. An account without one gets the proposed key.
        """
        key = self.account().get(TEMPORARY_URL_KEY)
        if not key:
            self.set_account_headers({TEMPORARY_URL_KEY: proposed_key})
            key = self.account().get(TEMPORARY_URL_KEY) or proposed_key
        account = urlsplit(self.url())
        path = f"{account.path}/{container}/{name}"
        text = f"{method}\n{EXPIRES_AT}\n{path}".encode()
        signature = hmac.new(key.encode(), text, hashlib.sha256).hexdigest()
        query = f"temp_url_sig={signature}&temp_url_expires={EXPIRES_AT}"
        return f"{account.scheme}://{account.netloc}{quote(path)}?{query}"

    def url(self) -> str:
        """Return the URL of the account."""
        return self._transport.url(self.service, self.service_type, self._seconds)

    def owner(self) -> tuple[str, str]:
        """Return the names of the project and of the user of the credential."""
        return self._transport.owner(self._seconds)


def _path(*names: str) -> str:
    return "".join(f"/{quote(name, safe='')}" for name in names)


def _encoded(headers: Headers) -> Headers:
    """Return headers whose bytes are UTF-8, as Swift stores metadata; the transport sends Latin-1."""
    return {name: value.encode().decode("latin-1") for name, value in headers.items()}


def _decoded(headers: Headers) -> Headers:
    """Return received headers as text."""
    return {name: value.encode("latin-1").decode(errors="replace") for name, value in headers.items()}
