"""The service: its version documents and its images."""

from __future__ import annotations

import html
from functools import partial
from typing import ClassVar, Final

from simulated_openstack.environment import Environment
from simulated_openstack.glance.images import CONFLICT, METHODS, Images
from simulated_openstack.http import REASONS, ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call, Identity, Service, version_document

UNVERIFIED: Final = (
    "This server could not verify that you are authorized to access the document you requested. Either you"
    " supplied the wrong credentials (e.g., bad password), or your browser does not understand how to"
    " supply the"
    " credentials required."
)
VERSIONS: Final = (15, 13, 12, 11, 10, 9, 8, 17, 7, 6, 5, 4, 3, 2, 1, 0)
CURRENT: Final = 17
# Lists of objects that the cloud does not have.
EMPTY: Final = {
    "/v2/metadefs/namespaces": "namespaces",
    "/v2/metadefs/resource_types": "resource_types",
    "/v2/tasks": "tasks",
}


class Glance(Service):
    """Images."""

    name: ClassVar[str] = "glance"
    port_offset: ClassVar[int] = 2
    public_paths: ClassVar[frozenset[str]] = frozenset({"/", "/versions"})

    def __init__(self, cloud: Environment, identity: Identity) -> None:
        """Add all routes."""
        super().__init__(cloud, identity)
        add = self.router.add
        add("GET", "/", self._versions)
        add("GET", "/versions", self._versions)
        add("GET", "/v2/info/import", self._import_methods)
        add("GET", "/v2/schemas/image", self._schema)
        for path, key in EMPTY.items():
            add("GET", path, partial(self._empty, key))
        self.images = Images(self)

    def error(self, error: ApiError) -> Response:
        """Return the answer for an error: a page of HTML."""
        text, detail = error.message, error.kind if error.message == CONFLICT else ""
        if error.status == 401:
            text, detail = UNVERIFIED, ""
        title = f"{error.status} {REASONS.get(error.status, '')}"
        page = (
            f"<html>\n <head>\n  <title>{title}</title>\n </head>\n <body>\n  <h1>{title}</h1>\n"
            f"  {html.escape(text)}<br /><br />\n{html.escape(detail)}\n\n\n </body>\n</html>"
        )
        return Response(error.status, page.encode(), {"Content-Type": "text/html; charset=UTF-8"})

    def _versions(self, call: Call) -> Response:
        status = 200 if call.request.path == "/versions" else 300
        return Response(status, {"versions": [self._document(call, minor) for minor in VERSIONS]})

    def _document(self, call: Call, minor: int) -> JsonObject:
        state = "CURRENT" if minor == CURRENT else "SUPPORTED"
        return version_document(f"v2.{minor}", state, f"{call.base}/v2/")

    def _empty(self, key: str, call: Call) -> Response:
        del call
        return Response(200, {key: []})

    def _import_methods(self, call: Call) -> Response:
        del call
        methods = {"description": "Import methods available.", "type": "array", "value": METHODS.split(",")}
        return Response(200, {"import-methods": methods})

    def _schema(self, call: Call) -> Response:
        del call
        return Response(200, {"name": "image", "properties": {}, "additionalProperties": {"type": "string"}})
