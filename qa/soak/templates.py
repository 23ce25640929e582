"""Random templates of things that call out, values that do not and stacks of both, their changes, how they
must end.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import orjson

VERSION = "2021-04-16"
THING, VALUE = "Test::Thing", "OS::Heat::Value"
NESTED = ("file:///one.yaml", "file:///two.yaml", "file:///deep.yaml")
CHANGES = ("add", "remove", "change", "replace", "invert", "other")

Resources = dict[str, Any]


def fresh(dice: random.Random, size: int) -> Resources:
    """Return resources whose requirements go any way, as long as in no circle."""
    names = [f"r{number}" for number in range(size)]
    dice.shuffle(names)
    resources: Resources = {}
    for name in names:
        _put(dice, resources, name)
    return resources


def steady() -> Resources:
    """Return resources of which every change is an update in place, see `revalued`."""
    alone: Resources = {f"k{number}": {"type": THING, "properties": {"value": "1"}} for number in range(4)}
    read = {"list_join": ["-", ["1", {"get_attr": ["k0", "value"]}]]}
    child = {
        name: {"type": url, "properties": {"value": "1"}} for name, url in zip("cd", NESTED[1:], strict=True)
    }
    return {**alone, **child, "k4": {"type": THING, "properties": {"value": read}}}


def revalued(dice: random.Random, before: Resources) -> Resources:
    """Return `before` with other values for some resources; none of them is replaced."""
    after = {name: _copy(snippet) for name, snippet in before.items()}
    for name in dice.sample(sorted(after), dice.randint(1, 3)):
        _revalue(dice, after[name])
    return after


def sparse(dice: random.Random, before: Resources) -> list[Resources]:
    """Return two templates that follow each other closely, each with a changed property of a thing: the first
    its value, which others are built with, the second often another one, without an effect on its outputs.
    """
    names = sorted(things(before) - {"bad"})
    if not names:
        return []
    first = {name: _copy(snippet) for name, snippet in before.items()}
    name = dice.choice(names)
    _revalue(dice, first[name])
    second = {key: _copy(snippet) for key, snippet in first.items()}
    if dice.random() < 0.7:
        second[name]["properties"]["slow_update"] = round(dice.uniform(0.001, 0.05), 3)
    else:
        _revalue(dice, second[dice.choice(names)])
    return [first, second]


def changed(dice: random.Random, before: Resources, size: int) -> tuple[str, Resources]:
    """Return a change of `before`, and its name; `size` bounds the added resources."""
    kind = dice.choice(CHANGES)
    after = {name: _copy(snippet) for name, snippet in before.items()}
    match kind:
        case "add":
            for name in sorted({f"r{number}" for number in range(size)} - set(after))[: dice.randint(1, 3)]:
                _put(dice, after, name)
        case "remove":
            for name in dice.sample(sorted(after), min(len(after), dice.randint(1, 2))):
                _remove_resource(after, name)
        case "change":
            for name in dice.sample(sorted(after), min(len(after), dice.randint(1, 3))):
                _revalue(dice, after[name])
        case "replace":
            for name in dice.sample(sorted(after), min(len(after), dice.randint(1, 2))):
                _replace(dice, after[name])
        case "invert":
            after = _inverted(after)
        case _:
            after = fresh(dice, dice.randint(1, size))
    return kind, after


def broken(dice: random.Random, resources: Resources) -> Resources:
    """Return these with an additional resource that fails permanently after its creation."""
    bad = {"type": THING, "properties": {"value": "bad", "error": True}}
    if resources and dice.random() < 0.7:
        bad["depends_on"] = [dice.choice(sorted(resources))]
    return {**resources, "bad": bad}


def template(resources: Resources, mark: str) -> dict[str, Any]:
    """Return the whole template; its description is unique."""
    return {"heat_template_version": VERSION, "description": mark, "resources": resources}


def value_of(resources: Resources, name: str, ids: Mapping[str, str]) -> str:
    """Return the value a resource must have, given everyone's physical id."""
    value = resources[name]["properties"]["value"]
    if isinstance(value, str):
        return value
    own, requests = value["list_join"][1]
    if "get_resource" in requests:
        return f"{own}-{ids[requests['get_resource']]}"
    return f"{own}-{value_of(resources, requests['get_attr'][0], ids)}"


def files(number: int) -> dict[str, str]:
    """Return the files of a stack's request of that number: all that is made in them has the value given.

    They change now and then, and the stacks made from them with them.
    """
    supplied, delay = {"get_param": "value"}, 0.05 if number // 3 % 2 else 0.1
    read = {"get_attr": ["a", "value"]}
    thing = {"type": THING, "properties": {"value": supplied, "delay": delay}}
    item = {"a": thing}
    two = {
        "a": {"type": THING, "properties": {"value": supplied}},
        "v": {"type": VALUE, "properties": {"value": read}},
        "b": {"type": THING, "properties": {"value": {"get_attr": ["v", "value"]}, "delay": 2 * delay}},
    }
    deep = {"b": thing, "a": {"type": NESTED[0], "properties": {"value": {"get_attr": ["b", "value"]}}}}
    return {
        url: orjson.dumps(
            {
                "heat_template_version": VERSION,
                "parameters": {"value": {"type": "string"}},
                "resources": inner,
                "outputs": {"value": {"value": read}},
            }
        ).decode()
        for url, inner in zip(NESTED, (item, two, deep), strict=True)
    }


INSIDE = dict(zip(NESTED, (1, 2, 2), strict=True))  # things, by file


def nested(resources: Resources) -> set[str]:
    """Return the names of those that are their own stacks."""
    return {name for name, snippet in resources.items() if snippet["type"] in NESTED}


def things(resources: Resources) -> set[str]:
    """Return the names of those that live elsewhere."""
    return {name for name, snippet in resources.items() if snippet["type"] == THING}


def _copy(snippet: Mapping[str, Any]) -> dict[str, Any]:
    copy = {**snippet, "properties": dict(snippet["properties"])}
    if "depends_on" in copy:
        copy["depends_on"] = list(copy["depends_on"])
    return copy


def _put(dice: random.Random, resources: Resources, name: str) -> None:
    """Add a resource that may require existing resources."""
    existing = sorted(resources)
    needs = dice.sample(existing, min(len(existing), dice.randint(0, 2)))
    kind = dice.choice((THING, THING, VALUE, dice.choice(NESTED)))
    properties: dict[str, Any] = {"value": dice.choice("123")}
    if kind == THING and dice.random() < 0.5:
        properties["delay"] = dice.choice((0.05, 0.3, 1.0))
    if kind == THING and dice.random() < 0.1:
        properties["error_times"] = 1
    if needs:
        requests = _request_resource(resources, needs[0], dice.random() < 0.5)
        properties["value"] = {"list_join": ["-", [properties["value"], requests]]}
    resources[name] = {"type": kind, "properties": properties}
    if len(needs) > 1:
        resources[name]["depends_on"] = needs[1:]


def _request_resource(resources: Resources, name: str, by_id: bool) -> dict[str, Any]:
    """Return a reference to an existing resource; only things have a meaningful id."""
    if by_id and resources[name]["type"] == THING:
        return {"get_resource": name}
    return {"get_attr": [name, "value"]}


def _requires(snippet: Mapping[str, Any]) -> list[str]:
    result = list(snippet.get("depends_on", ()))
    value = snippet["properties"]["value"]
    if not isinstance(value, str):
        requests = value["list_join"][1][1]
        result.append(requests["get_resource"] if "get_resource" in requests else requests["get_attr"][0])
    return result


def _release(snippet: dict[str, Any], name: str) -> None:
    """Let a snippet no longer require another."""
    other_items = [item for item in snippet.pop("depends_on", ()) if item != name]
    if other_items:
        snippet["depends_on"] = other_items
    value = snippet["properties"]["value"]
    if not isinstance(value, str) and name in _requires({"properties": snippet["properties"]}):
        snippet["properties"]["value"] = value["list_join"][1][0]


def _remove_resource(resources: Resources, name: str) -> None:
    del resources[name]
    for snippet in resources.values():
        _release(snippet, name)


def _revalue(dice: random.Random, snippet: dict[str, Any]) -> None:
    value, own = snippet["properties"]["value"], dice.choice("456789")
    snippet["properties"]["value"] = (
        own if isinstance(value, str) else {"list_join": ["-", [own, value["list_join"][1][1]]]}
    )


def _replace(dice: random.Random, snippet: dict[str, Any]) -> None:
    """Change an immutable property, or the type."""
    if snippet["type"] == THING and dice.random() < 0.8:
        snippet["properties"]["delay"] = round(dice.uniform(0.01, 0.4), 3)
    elif snippet["type"] == VALUE:
        snippet["type"] = dice.choice((THING, NESTED[0]))
    elif snippet["type"] in NESTED:
        snippet["type"] = dice.choice(NESTED)
    # A thing stays a thing where its id may be used.


def _inverted(resources: Resources) -> Resources:
    """Return these with every requirement turned round."""
    turned = {name: _copy(snippet) for name, snippet in resources.items()}
    edges = [(name, required) for name, snippet in resources.items() for required in _requires(snippet)]
    for name, required in edges:
        _release(turned[name], required)
    for name, required in edges:
        snippet = turned[required]
        if isinstance(snippet["properties"]["value"], str):
            own, requests = snippet["properties"]["value"], _request_resource(turned, name, by_id=False)
            snippet["properties"]["value"] = {"list_join": ["-", [own, requests]]}
        else:
            snippet.setdefault("depends_on", []).append(name)
    return turned
