"""Differences between two descriptions of the resource types, and their explanations. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

Facts = Mapping[str, Any]

FLAGS = (
    "type",
    "support",
    "required",
    "update_allowed",
    "immutable",
    "unimplemented",
    "default",
    "constraints",
)
TOP_LEVEL = frozenset({"update_allowed", "immutable"})  # without effect on members of maps and lists


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact that differs: `kind` is its name, `path` the property, attribute or rule."""

    type: str
    kind: str
    path: str
    heat: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.type}: {self.kind} {self.path}: {_shown(self.heat)} in Heat, {_shown(self.ours)} here"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Patterns of differences, and their reason; a pattern without a difference is stale."""

    type: str
    kind: str
    path: str
    reason: str

    def covers(self, difference: Difference) -> bool:
        """Return whether a difference has this reason."""
        return (
            fnmatchcase(difference.type, self.type)
            and difference.kind == self.kind
            and any(fnmatchcase(difference.path, path) for path in self.path.split(" | "))
        )


def differences(heat: Mapping[str, Facts], ours: Mapping[str, Facts]) -> Iterator[Difference]:
    """Yield the differences of all types."""
    for name in sorted(heat.keys() | ours.keys()):
        if name not in ours:
            yield Difference(name, "missing type", "", heat[name]["support"], None)
        elif name not in heat:
            yield Difference(name, "additional type", "", None, ours[name]["support"])
        elif ours[name].get("placeholder"):
            if heat[name]["support"] != "HIDDEN":
                yield Difference(name, "support", "", heat[name]["support"], "HIDDEN")
        else:
            yield from _of_type(name, heat[name], ours[name])


def unexplained(found: Sequence[Difference], explained: Sequence[Explanation]) -> list[Difference]:
    """Return the differences without an explanation."""
    return [difference for difference in found if not any(given.covers(difference) for given in explained)]


def stale(found: Sequence[Difference], explained: Sequence[Explanation]) -> list[Explanation]:
    """Return the explanations of differences that do not exist."""
    return [given for given in explained if not any(given.covers(difference) for difference in found)]


def _of_type(name: str, heat: Facts, ours: Facts) -> Iterator[Difference]:
    for kind in ("support", "name_limit"):
        if heat.get(kind) != ours.get(kind):
            yield Difference(name, kind, "", heat.get(kind), ours.get(kind))
    for section, prefix in (("properties", ""), ("update_policy", "update_policy:")):
        yield from _of_properties(name, prefix, heat.get(section, {}), ours.get(section, {}))
    theirs, own = heat["attributes"], ours["attributes"]
    for attribute in sorted(theirs.keys() | own.keys()):
        yield from _of_attribute(name, attribute, theirs.get(attribute), own.get(attribute))
    rules, own_rules = set(heat.get("rules", ())), set(ours.get("rules", ()))
    yield from (Difference(name, "missing rule", rule, rule, None) for rule in sorted(rules - own_rules))
    yield from (Difference(name, "additional rule", rule, None, rule) for rule in sorted(own_rules - rules))


def _of_attribute(name: str, attribute: str, heat: str | None, ours: str | None) -> Iterator[Difference]:
    if heat is None or ours is None:
        kind = "missing attribute" if ours is None else "additional attribute"
        yield Difference(name, kind, attribute, heat, ours)
        return
    (type_, _, live), (own_type, _, own_live) = heat.partition(" "), ours.partition(" ")
    if type_ != own_type:
        yield Difference(name, "attribute type", attribute, type_, own_type)
    if live and not own_live:
        yield Difference(name, "attribute not live", attribute, True, False)


def _of_properties(name: str, prefix: str, heat: Facts, ours: Facts) -> Iterator[Difference]:
    for key in sorted(heat.keys() | ours.keys()):
        theirs, own, path = heat.get(key), ours.get(key), prefix + key
        if theirs is None or own is None:
            kind = "missing property" if own is None else "additional property"
            yield Difference(name, kind, path, _support(theirs), _support(own))
            continue
        for flag in FLAGS:
            before, after = theirs.get(flag), own.get(flag)
            if flag in TOP_LEVEL and "." in path:
                continue
            if flag == "constraints":
                before, after = _only(before, after), _only(after, before)
            if before != after and not (flag == "default" and _equal_defaults(before, after)):
                yield Difference(name, flag, path, before, after)
        members, own_members = theirs.get("members"), own.get("members")
        if (members is None) != (own_members is None):
            yield Difference(name, "members", path, _names(members), _names(own_members))
        elif members is not None:
            yield from _of_properties(name, f"{path}.", members, own_members)


def _only(constraints: Sequence[Any] | None, rest: Sequence[Any] | None) -> list[Any]:
    """Return the constraints that `rest` does not contain."""
    return [difference for difference in constraints or () if difference not in (rest or ())]


def _equal_defaults(heat: Any, ours: Any) -> bool:
    """Return whether two defaults are converted to the same value."""
    return heat is not None and ours is not None and str(heat).lower() == str(ours).lower()


def _support(prop: Facts | None) -> str | None:
    return None if prop is None else str(prop.get("support", "SUPPORTED"))


def _names(members: Facts | None) -> Any:
    return "any" if members is None else sorted(members)


def _shown(value: Any) -> str:
    return "absent" if value is None else str(value)
