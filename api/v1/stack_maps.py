"""Map of a stack of any size: groups of resources and the edges between them; an extension of Heat's API."""

from __future__ import annotations

from flask import Blueprint, Response

from api.request import query_params
from api.request.stack_lookup import get_stack
from api.response.serialization import json_response
from api.streaming.past_fields import picture_of
from orchestrator.engine.pictures.groups import Group, StackMap, Tree, parse_expansion, summarize
from orchestrator.errors import InvalidRequest
from orchestrator.json_types import JsonObject

stack_maps = Blueprint("stack_maps", __name__)


@stack_maps.get("/<project_id>/stacks/<stack_name>/<stack_id>/map")
def show(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """Return at most 300 groups of resources with their counts by state, and the edges between them."""
    query_params.require_known("expand", "at")
    shown = picture_of(get_stack(stack_name, stack_id), with_groups=True)
    assert shown.groups is not None
    (fine, tree), states, count = shown.groups, shown.states, len(shown.states)
    expanded = query_params.texts("expand")
    expansion = parse_expansion(expanded, tree)
    if expansion is None:
        raise InvalidRequest("'expand' has the values of 'expand' in the groups of a map, at most 20.")
    return json_response({"map": map_body(summarize(fine, states, tree, expansion), tree, count)})


def map_body(picture: StackMap, tree: Tree, count: int) -> JsonObject:
    """Return a map in the format of responses."""
    return {
        "count": count,
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
