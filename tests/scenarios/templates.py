"""Templates made and changed at random: every resource, edge and value may come, go or turn round.

With a depth, some of the resources are their own stacks: made from a file with two parameters, `P` and
`F`, and one output, `a`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import orjson

NAMES = "abcdefgh"
VALUE = "OS::Heat::Value"
NESTED = "a template"
VERSION = "2021-04-16"
TYPES = ("Sim::Changeable", "Sim::Changeable", "Sim::Changeable", "Sim::Rigid", VALUE)
# How a resource requires another: in words, by its id (passed to the provider), by an attribute that updates
# it in place, by an attribute that replaces it, by an id that replaces it.
EDGES = ("words", "id", "attribute", "fixed attribute", "fixed id")


@dataclass
class Draft:
    """A resource."""

    type: str
    value: str = "1"
    fixed: str = "1"
    looks: int = 0
    edges: dict[str, str] = field(default_factory=dict)
    inner: Drafts = field(default_factory=dict)  # of a template
    file: int = 1  # the number of the file: a different file is a different type

    def copy(self) -> Draft:
        inner = {name: draft.copy() for name, draft in self.inner.items()}
        return Draft(self.type, self.value, self.fixed, self.looks, dict(self.edges), inner, self.file)


Drafts = dict[str, Draft]  # dependents come after their requirements


def first(dice: random.Random, depth: int = 0, *, inside: bool = False) -> Drafts:
    """Return a template with stacks nested `depth` deep; a nested template (`inside`) has parameters."""
    drafts: Drafts = {}
    for name in dice.sample(NAMES, dice.randint(0, 3) if inside else dice.randint(1, 6)):
        _add(drafts, name, dice, depth, inside=inside)
    return drafts


def another(drafts: Drafts, dice: random.Random, depth: int = 0, *, inside: bool = False) -> Drafts:
    """Return a template that differs a little, or much, or turns dependencies round."""
    if dice.random() < 0.1:
        return first(dice, depth, inside=inside)
    made = {name: draft.copy() for name, draft in drafts.items()}
    for _ in range(dice.randint(1, 3)):
        _change(made, dice, depth, inside=inside)
    if dice.random() < 0.15:
        made = inverted(made)
    return made


def inverted(drafts: Drafts) -> Drafts:
    """Return the same resources with every dependency turned round."""
    made = {name: draft.copy() for name, draft in reversed(drafts.items())}
    for draft in made.values():
        draft.edges = {}
    for name, draft in drafts.items():
        for required, how in draft.edges.items():
            made[required].edges[name] = _fit(made, how, name)
    return made


def snippets(drafts: Drafts, place: str = "") -> dict[str, Any]:
    """Return the resources as a template has them; `place` is where in the tree that is."""
    return {name: _snippet(draft, drafts, f"{place}{name}") for name, draft in drafts.items()}


def files(drafts: Drafts, place: str = "") -> dict[str, str]:
    """Return the files of the templates in a template."""
    result: dict[str, str] = {}
    for name, draft in drafts.items():
        if draft.type == NESTED:
            result[_url(f"{place}{name}", draft.file)] = _text(draft.inner, f"{place}{name}.")
            result |= files(draft.inner, f"{place}{name}.")
    return result


def _url(place: str, file: int) -> str:
    return ("file:///{}-{}.yaml", "{}-{}.yaml", "{}-{}.template")[file % 3].format(place, file)


def _text(drafts: Drafts, place: str) -> str:
    output: Any = {"get_param": "P"}
    if drafts:
        name, draft = list(drafts.items())[-1]
        output = {"get_attr": [name, "value" if draft.type == VALUE else "a"]}
    return text_of(snippets(drafts, place), output)


def text_of(resources: dict[str, Any], output: Any) -> str:
    """Return the template of a nested stack, with its outputs."""
    template = {
        "heat_template_version": VERSION,
        "parameters": {"P": {"type": "string"}, "F": {"type": "string"}},
        "resources": resources,
        "outputs": {"a": {"value": output}},
    }
    return orjson.dumps(template).decode()


def _add(drafts: Drafts, name: str, dice: random.Random, depth: int = 0, *, inside: bool = False) -> None:
    kind = NESTED if depth and dice.random() < 0.5 else dice.choice(TYPES)
    draft = Draft(kind, dice.choice("123"), dice.choice("12"), dice.choice([0, 0, 1, 3]))
    if inside:
        draft.value, draft.fixed = dice.choice("123PP"), dice.choice("12FF")
    if kind == NESTED:
        draft.inner = first(dice, depth - 1, inside=True)
    for required in dice.sample(list(drafts), min(len(drafts), dice.choice([0, 1, 1, 2, 3]))):
        draft.edges[required] = _fit(drafts, dice.choice(EDGES), required)
    drafts[name] = draft


def _change(drafts: Drafts, dice: random.Random, depth: int = 0, *, inside: bool = False) -> None:
    free = [name for name in NAMES if name not in drafts]
    kinds = ["add", "remove", "value", "value", "fixed", "type", "looks", "edge", "edge"]
    resource_type = dice.choice([*kinds, "inner", "inner", "inner", "file"] if depth else kinds)
    if resource_type == "add" and free:
        _add(drafts, dice.choice(free), dice, depth, inside=inside)
    if not drafts:
        return
    name = dice.choice(list(drafts))
    draft = drafts[name]
    match resource_type:
        case "remove":
            del drafts[name]
            for other in drafts.values():
                other.edges.pop(name, None)
        case "value":
            draft.value = dice.choice("1234")
        case "fixed":
            draft.fixed = dice.choice("123")
        case "type":
            draft.type = NESTED if depth and dice.random() < 0.3 else dice.choice(TYPES)
            if draft.type == NESTED and not draft.inner:
                draft.inner = first(dice, depth - 1, inside=True)
            for other in drafts.values():
                if name in other.edges:
                    other.edges[name] = _fit(drafts, other.edges[name], name)
        case "looks":
            draft.looks = dice.choice([0, 1, 3])
        case "inner":
            draft.inner = another(draft.inner, dice, depth - 1, inside=True)
        case "file":
            draft.file = 3 - draft.file
        case "edge":
            before = list(drafts)[: list(drafts).index(name)]
            if before and dice.random() < 0.6:
                required = dice.choice(before)
                draft.edges[required] = _fit(drafts, dice.choice(EDGES), required)
            elif draft.edges:
                del draft.edges[dice.choice(list(draft.edges))]


def _fit(drafts: Drafts, how: str, required: str) -> str:
    """Neither a value nor a stack has an id that a provider knows."""
    unknown = drafts[required].type in (VALUE, NESTED)
    return "attribute" if unknown and how in ("id", "fixed id") else how


def _snippet(draft: Draft, drafts: Drafts, place: str) -> dict[str, Any]:
    by: dict[str, list[Any]] = {how: [] for how in EDGES}
    for required, how in draft.edges.items():
        match how:
            case "words":
                by[how].append(required)
            case "id" | "fixed id":
                by[how].append({"get_resource": required})
            case _:
                attribute = "value" if drafts[required].type == VALUE else "a"
                by[how].append({"get_attr": [required, attribute]})
    if draft.type == VALUE:
        parts = [*by["attribute"], *by["fixed attribute"], *by["id"], *by["fixed id"]]
        properties: dict[str, Any] = {"value": _joined(draft.value, parts)}
    elif draft.type == NESTED:
        properties = {
            "P": _joined(draft.value, [*by["attribute"], *by["id"]]),
            "F": _joined(draft.fixed, [*by["fixed attribute"], *by["fixed id"]]),
        }
    else:
        properties = {
            "a": _joined(draft.value, by["attribute"]),
            "!a": _joined(draft.fixed, by["fixed attribute"]),
            "on": by["id"] + by["fixed id"],
            "looks": draft.looks,
        }
        if by["fixed id"]:
            properties["!b"] = _joined("", by["fixed id"])
    kind = _url(place, draft.file) if draft.type == NESTED else draft.type
    snippet: dict[str, Any] = {"type": kind, "properties": properties}
    return snippet | ({"depends_on": by["words"]} if by["words"] else {})


def _joined(own: str, parts: list[Any]) -> Any:
    value = {"get_param": own} if own in ("P", "F") else own
    return {"list_join": ["-", [value, *parts]]} if parts else value
