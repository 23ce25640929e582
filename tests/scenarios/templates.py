"""Templates made and changed at random: every resource, edge and value may come, go or turn round."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

NAMES = "abcdefgh"
VALUE = "OS::Heat::Value"
TYPES = ("Sim::Changeable", "Sim::Changeable", "Sim::Changeable", "Sim::Rigid", VALUE)
# How one resource requires another: in words, by its id (told to the provider), by an attribute that changes
# it in place, by one that makes another of it, by its id that makes another of it.
EDGES = ("words", "id", "attribute", "fixed attribute", "fixed id")


@dataclass
class Draft:
    """One resource."""

    type: str
    value: str = "1"
    fixed: str = "1"
    looks: int = 0
    edges: dict[str, str] = field(default_factory=dict)

    def copy(self) -> Draft:
        return Draft(self.type, self.value, self.fixed, self.looks, dict(self.edges))


Drafts = dict[str, Draft]  # who requires comes after whom it requires


def first(dice: random.Random) -> Drafts:
    """Return a template."""
    drafts: Drafts = {}
    for name in dice.sample(NAMES, dice.randint(1, 6)):
        _add(drafts, name, dice)
    return drafts


def another(drafts: Drafts, dice: random.Random) -> Drafts:
    """Return a template that differs a little, or much, or turns dependencies round."""
    if dice.random() < 0.1:
        return first(dice)
    made = {name: draft.copy() for name, draft in drafts.items()}
    for _ in range(dice.randint(1, 3)):
        _change(made, dice)
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


def snippets(drafts: Drafts) -> dict[str, Any]:
    """Return the resources as a template has them."""
    return {name: _snippet(draft, drafts) for name, draft in drafts.items()}


def _add(drafts: Drafts, name: str, dice: random.Random) -> None:
    draft = Draft(dice.choice(TYPES), dice.choice("123"), dice.choice("12"), dice.choice([0, 0, 1, 3]))
    for required in dice.sample(list(drafts), min(len(drafts), dice.choice([0, 1, 1, 2, 3]))):
        draft.edges[required] = _fit(drafts, dice.choice(EDGES), required)
    drafts[name] = draft


def _change(drafts: Drafts, dice: random.Random) -> None:
    free = [name for name in NAMES if name not in drafts]
    kind = dice.choice(["add", "remove", "value", "value", "fixed", "type", "looks", "edge", "edge"])
    if kind == "add" and free:
        _add(drafts, dice.choice(free), dice)
    if not drafts:
        return
    name = dice.choice(list(drafts))
    draft = drafts[name]
    match kind:
        case "remove":
            del drafts[name]
            for other in drafts.values():
                other.edges.pop(name, None)
        case "value":
            draft.value = dice.choice("1234")
        case "fixed":
            draft.fixed = dice.choice("123")
        case "type":
            draft.type = dice.choice(TYPES)
            for other in drafts.values():
                if name in other.edges:
                    other.edges[name] = _fit(drafts, other.edges[name], name)
        case "looks":
            draft.looks = dice.choice([0, 1, 3])
        case "edge":
            before = list(drafts)[: list(drafts).index(name)]
            if before and dice.random() < 0.6:
                required = dice.choice(before)
                draft.edges[required] = _fit(drafts, dice.choice(EDGES), required)
            elif draft.edges:
                del draft.edges[dice.choice(list(draft.edges))]


def _fit(drafts: Drafts, how: str, required: str) -> str:
    """A value has no id that a provider knows."""
    return "attribute" if drafts[required].type == VALUE and how in ("id", "fixed id") else how


def _snippet(draft: Draft, drafts: Drafts) -> dict[str, Any]:
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
    else:
        properties = {
            "a": _joined(draft.value, by["attribute"]),
            "!a": _joined(draft.fixed, by["fixed attribute"]),
            "on": by["id"] + by["fixed id"],
            "looks": draft.looks,
        }
        if by["fixed id"]:
            properties["!b"] = _joined("", by["fixed id"])
    snippet: dict[str, Any] = {"type": draft.type, "properties": properties}
    return snippet | ({"depends_on": by["words"]} if by["words"] else {})


def _joined(own: str, parts: list[Any]) -> Any:
    return {"list_join": ["-", [own, *parts]]} if parts else own
