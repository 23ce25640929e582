"""What the rules of a project say about a resource: its policy, a pause, accepted differences. Pure.

A policy names a project, a stack, a type, a type in a stack, or a resource, or has a name to which the
environment of a stack refers. The most specific one applies: resource, type in a stack, type, stack, the
policy of its environment, project; of several stacks, the innermost.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, get_args

from orchestrator.schema.safe_regex import glob

Mode = Literal["off", "report", "heal", "ask"]
MODES: Final = get_args(Mode)
DEFAULT: Final[Mode] = "report"
RuleKind = Literal["policy", "pause", "accept"]
RULE_KINDS: Final = get_args(RuleKind)
Repetition = Literal["", "daily", "weekly"]
REPETITIONS: Final = get_args(Repetition)
PERIODS: Final = {"daily": dt.timedelta(days=1), "weekly": dt.timedelta(days=7)}

PROPERTIES: Final = ".properties."


class Place(NamedTuple):
    """Where a resource is.

    `stacks` are the stacks around it, the innermost first, each with the path of the resource in it: the
    names of the resources on the way, with dots. `named` are the policies of their environments, by stack.
    """

    type: str
    stacks: tuple[tuple[int, str], ...]
    named: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A policy, a pause or an acceptance, in force or not yet. Without a stack it concerns the project.

    `path` of an acceptance is a pattern for paths of properties in its stack. A pause that repeats is a
    maintenance window.
    """

    id: int
    kind: RuleKind
    stack_id: int | None = None
    type: str = ""
    resource: str = ""
    mode: Mode = DEFAULT
    path: str = ""
    reason: str = ""
    starts_at: dt.datetime | None = None
    ends_at: dt.datetime | None = None
    repeats: Repetition = ""
    name: str = ""  # to which environments refer

    def names(self, place: Place) -> bool:
        """Whether the rule concerns the resource."""
        if self.type and self.type != place.type:
            return False
        if self.name:
            return any(name == self.name for _, name in place.named)
        if self.stack_id is None:
            return not self.resource
        path = dict(place.stacks).get(self.stack_id)
        if path is None:
            return False
        return not self.resource or path == self.resource or path.startswith(f"{self.resource}.")


class Effective(NamedTuple):
    """The policy that applies to a resource; without a rule it is the default."""

    mode: Mode
    rule: Rule | None = None


def effective(rules: Iterable[Rule], place: Place) -> Effective:
    """Return the most specific policy that names the resource."""
    found = [rule for rule in rules if rule.kind == "policy" and rule.names(place)]
    if not found:
        return Effective(DEFAULT)
    best = max(found, key=lambda rule: _specificity(rule, place))
    return Effective(best.mode, best)


def _specificity(rule: Rule, place: Place) -> tuple[int, int, int, bool, int]:
    """Resources before types before stacks; then the innermost stack, and the longest path. The policy of a
    stack counts before its environment's.
    """
    inner = [id_ for id_, _ in reversed(place.stacks)]
    stack_id = rule.stack_id
    if rule.name:
        stack_id = next(id_ for id_, name in place.named if name == rule.name)
    depth = inner.index(stack_id) + 1 if stack_id is not None else 0
    return bool(rule.resource), bool(rule.type), depth + rule.resource.count("."), not rule.name, rule.id


def paused(rules: Iterable[Rule], place: Place, now: dt.datetime) -> Rule | None:
    """Return the pause or the maintenance window in progress for the resource that ends last."""
    found = [
        (end, rule)
        for rule in rules
        if rule.kind == "pause" and rule.names(place) and (end := in_force_until(rule, now)) is not None
    ]
    return max(found, key=lambda item: (item[0], item[1].id))[1] if found else None


def in_force_until(rule: Rule, now: dt.datetime) -> dt.datetime | None:
    """Return the end of a pause that is in force now; None if it is not. A window that repeats is in force
    for the same time in each period.
    """
    start, end = rule.starts_at or now, rule.ends_at
    assert end is not None
    if now < start:
        return None
    if rule.repeats:
        missed = (now - start) // PERIODS[rule.repeats]
        end += missed * PERIODS[rule.repeats]
    return end if now < end else None


def accepts(rules: Iterable[Rule], place: Place, property_: str, now: dt.datetime) -> Rule | None:
    """Return the rule that accepts a difference of a property of the resource."""
    paths = dict(place.stacks)
    for rule in rules:
        if rule.kind != "accept" or (rule.ends_at is not None and rule.ends_at <= now):
            continue
        path = paths.get(rule.stack_id) if rule.stack_id is not None else None
        if path is not None and matches(rule.path, f"{path}{PROPERTIES}{property_}"):
            return rule
    return None


def matches(pattern: str, path: str) -> bool:
    """Whether a path of a property, or a part of one, matches a pattern: `*` stands for any text, `?` for a
    character. A pattern for a property matches its members too.
    """
    return any(glob(text, classes=False).match(path) is not None for text in (pattern, f"{pattern}.*"))


def matches_everything(pattern: str) -> bool:
    """Whether a pattern accepts every difference of a stack."""
    resource, _, property_ = pattern.partition(PROPERTIES)
    return all(not set(part) - set("*?.") for part in (resource, property_))
