"""Services with microversions: the compute and the volume service."""

from __future__ import annotations

from typing import ClassVar, Final

from simulated_openstack.http import ApiError, Request, Response
from simulated_openstack.service import Service

NO_PAGE: Final = (
    b"<html>\n <head>\n  <title>404 Not Found</title>\n </head>\n <body>\n  <h1>404 Not Found</h1>\n"
    b"  The resource could not be found.<br /><br />\n\n\n\n </body>\n</html>"
)
KINDS: Final = {
    400: "badRequest",
    403: "forbidden",
    404: "itemNotFound",
    405: "badMethod",
    409: "conflictingRequest",
    413: "overLimit",
}


class MicroversionedService(Service):
    """A service whose requests name a microversion in a header."""

    kind: ClassVar[str]  # in the header `OpenStack-API-Version`
    former_header: ClassVar[str] = ""  # another header, with the version alone
    oldest: ClassVar[tuple[int, int]]  # also the default
    latest: ClassVar[tuple[int, int]]

    def version_of(self, request: Request) -> tuple[int, int]:
        """Return the microversion of a request.

        Raises:
            ApiError: 406, the service does not have it.
        """
        words = request.headers.get("openstack-api-version", "").split()
        if len(words) == 2 and words[0] == self.kind:
            text = words[1]
        else:
            text = request.headers.get(self.former_header, _text(self.oldest))
        if text == "latest":
            return self.latest
        major, _, minor = text.partition(".")
        version = (int(major), int(minor or 0))
        if not self.oldest <= version <= self.latest:
            bounds = f"Minimum is {_text(self.oldest)} and maximum is {_text(self.latest)}."
            raise ApiError(406, f"Version {text} is not supported by the API. {bounds}", "computeFault")
        return version

    def no_route(self, request: Request) -> Response:
        """Return the answer for an unknown path: a page of HTML."""
        if any(self.router.methods(request.path)):
            return super().no_route(request)
        return Response(404, NO_PAGE, {"Content-Type": "text/html; charset=UTF-8"})


def _text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
