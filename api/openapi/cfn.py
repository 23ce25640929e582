"""Amazon's query API: one path, the action in the query."""

from __future__ import annotations

from typing import Final

from api.openapi.operation import JSON, Answer, Operation, Operations, Shape, maybe, told
from api.openapi.resource_types import REFUSED, SIGNED, XML
from api.openapi.shapes import JsonMap

FORM: Final = "application/x-www-form-urlencoded"
QUERY_PATH: Final = "/v1/"


class CfnQuery(Shape):
    """What is asked, with whatever the action takes."""

    Action: str = told("The action.", "DescribeStackResource")
    StackName: str | None = maybe("The stack: its name, id or ARN.", "web")
    LogicalResourceId: str | None = maybe("The resource.", "one")
    ContentType: str | None = maybe("JSON: the answer is JSON.", "JSON")


ANSWER: Final = {
    200: Answer("The answer; JSON with `ContentType=JSON`.", str, XML, also={JSON: JsonMap}),
    **REFUSED,
}

OPERATIONS: Final[Operations] = {
    "cfn.query": Operation(SIGNED, ANSWER, CfnQuery, secured="signature", path=QUERY_PATH),
    "POST cfn.query": Operation(
        SIGNED, ANSWER, body=CfnQuery, body_media=FORM, secured="signature", path=QUERY_PATH
    ),
}
