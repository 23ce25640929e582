"""The reasons that a preview shows for a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from orchestrator.engine.check.change import Replace, ReplaceReason, Update, not_updatable
from orchestrator.engine.preview.property_forecast import InputForecast, mentioned
from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import ResourceType

MAX_NAMES: Final = 3  # names listed before "and n more"


def joined(*texts: str) -> str:
    """Return the non-empty texts, joined."""
    return "; ".join(text for text in texts if text)


def listed(names: Sequence[str]) -> str:
    """Return names as a list, cut after `MAX_NAMES`."""
    shown = ", ".join(names[:MAX_NAMES])
    return f"{shown} and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else shown


def drifted(names: Sequence[str]) -> str:
    """Return the text for properties changed outside the stack."""
    return f"{listed(names)} {'was' if len(names) == 1 else 'were'} changed outside the stack"


def change_reason(
    decision: Update | Replace,
    body: JsonMapping,
    type_: ResourceType,
    inputs: Mapping[str, InputForecast],
    *,
    certain: bool,
    maybe: bool,
) -> str:
    """Return why a resource is updated or replaced; `maybe`: some of its values are not known yet."""
    changed = decision.changed
    causes = _causes(changed, body, inputs, maybe=maybe)
    names = listed(sorted(changed))
    changes = f"{'changes' if len(changed) == 1 else 'change'}" if certain else "may change"
    if isinstance(decision, Replace):
        fixed = sorted(not_updatable(type_, changed))
        if not fixed:
            return ReplaceReason.TYPE_RULE.value.format(names=names, verb=changes) + causes
        if certain:
            return ReplaceReason.FIXED_PROPERTIES.value.format(names=listed(fixed)) + causes
        return f"{listed(fixed)} may change, which requires a replacement{causes}"
    if changed:
        return f"{names} {changes}{causes}"
    return f"its metadata {'changes' if certain else changes}"


def _causes(
    changed: frozenset[str],
    body: JsonMapping,
    inputs: Mapping[str, InputForecast],
    *,
    maybe: bool,
) -> str:
    """Return the requirements whose outputs change, in brackets."""
    moved = {name: item for name, item in inputs.items() if item.moved}
    if not moved:
        return ""
    properties = body.get("properties")
    written = [properties.get(n) for n in changed] if isinstance(properties, Mapping) else []
    used = mentioned(written if changed else body.get("metadata"), moved)
    if isinstance(properties, Mapping) and not used and maybe:
        used = mentioned(properties, moved)  # a single function returns all properties
    if not used:
        return ""
    shown = [f"{name} {moved[name].why}" for name in used[:MAX_NAMES]]
    rest = [f"{len(used) - MAX_NAMES} more"] if len(used) > MAX_NAMES else []
    return f" ({', '.join([*shown, *rest])})"
