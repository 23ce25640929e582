"""Map of a stack of any size: groups of resources and the edges between them; an extension of Heat's API."""

from __future__ import annotations

from flask import Blueprint, Response

from api.request import query_params
from api.request.stack_lookup import get_stack
from api.response.serialization import json_response
from api.streaming.pictures import picture_of
from orchestrator.engine.pictures.groups import Group, StackMap, Tree, parse_expansion, summarize
from orchestrator.errors import InvalidRequest
from orchestrator.json_types import JsonObject

stack_maps = Blueprint("stack_maps", __name__)


@stack_maps.get("/<project_id>/stacks/<stack_name>/<stack_id>/map")
def show(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """Return at most 300 groups of resources with their counts by state, and the edges between them."""
    query_params.require_known("expand", "at", "draft")
    stack = get_stack(stack_name, stack_id)
    shown = picture_of(stack).groups()
    expansion = parse_expansion(query_params.texts("expand"), shown.tree)
    if expansion is None:
        raise InvalidRequest("'expand' has the values of 'expand' in the groups of a map, at most 20.")
    body: JsonObject = {
        "stack_status": stack.state,
        "draft": shown.is_draft,
        "newer_in_seconds": shown.newer_in_seconds,
        "count": sum(shown.numbers.values()),
    }
    picture = summarize(shown.fine, shown.numbers, shown.tree, expansion)
    return json_response({"map": body | _body(picture, shown.tree)})


def _body(picture: StackMap, tree: Tree) -> JsonObject:
    return {
        "groups": [_group(group, tree) for group in picture.groups],
        "edges": [
            {"dependent": dependent, "required": required, "count": number}
            for dependent, required, number in picture.edges
        ],
        "omitted": {
            "groups": picture.omitted_groups,
            "resources": picture.omitted_resources,
            "edges": picture.omitted_edges,
        },
    }


def _group(group: Group, tree: Tree) -> JsonObject:
    key = group.key
    return {
        "label": group.label,
        "type": key.type or None,
        "stacks": group.stacks,
        "stack_name": tree.names.get(key.stack_id),
        "stack_id": tree.uuids.get(key.stack_id),
        "levels": [key.first, key.last],
        "count": group.size,
        "counts": dict(group.counts),
        "expand": group.expand or None,
    }
