"""Amazon's query API: a single path with the action in the query."""

from __future__ import annotations

from typing import Any, Final

from api.openapi.operation import JSON, Operation, Operations, Response, ok
from orchestrator.bodies.model import Shape, described, optional
from orchestrator.json_types import JsonObject

SIGNED: Final = "signed"
XML: Final = "application/xml"
FORM: Final = "application/x-www-form-urlencoded"
QUERY_PATH: Final = "/v1/"


class Signalled(Shape):
    """Signalled resource."""

    resource: str = described("Resource.", "handle")
    metadata: Any = described("Metadata.", {})


class CfnQuery(Shape):
    """Parameters of a query; an action may have further parameters."""

    Action: str = described("Action name.", "DescribeStackResource")
    StackName: str | None = optional("Name, id or ARN of the stack.", "web")
    LogicalResourceId: str | None = optional("Resource.", "one")
    ContentType: str | None = optional("`JSON` selects a JSON response.", "JSON")


REFUSED: Final = {
    status: Response(text, str, XML, also={JSON: JsonObject})
    for status, text in (
        (400, "Invalid request, with Amazon's error code; JSON with `ContentType=JSON`."),
        (403, "The signature does not grant access; JSON with `ContentType=JSON`."),
    )
}
ANSWER: Final = {
    200: Response("The response; JSON with `ContentType=JSON`.", str, XML, also={JSON: JsonObject}),
    **REFUSED,
}

OPERATIONS: Final[Operations] = {
    "cfn.query": Operation(SIGNED, ANSWER, CfnQuery, secured="signature", path=QUERY_PATH),
    "POST cfn.query": Operation(
        SIGNED, ANSWER, body=CfnQuery, body_media=FORM, secured="signature", path=QUERY_PATH
    ),
    "cfn.wait_condition": Operation(
        SIGNED, {**ok("Accepted.", Signalled), **REFUSED}, body=Any, body_required=False, secured="signature"
    ),
    "cfn.signal": Operation(
        SIGNED, {**ok("Accepted.", type(None)), **REFUSED}, body=Any, body_required=False, secured="signature"
    ),
}
