"""Extensions to Heat's group properties, set in the template.

They are stored in the resource's metadata under a separate key, which Heat ignores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from orchestrator.errors import ProviderError
from orchestrator.json_types import JsonMapping
from orchestrator.resources.groups.member_removal import Victims

KEY: Final = "orchestrator:group"
VICTIMS: Final = get_args(Victims)


@dataclass(frozen=True, slots=True)
class Extras:
    """The extensions; the defaults are Heat's behaviour."""

    victims: Victims = "oldest"  # order of removal when a scaling group shrinks
    remove: tuple[Any, ...] = ()  # members of a scaling group to remove, by name or reference id
    strict: bool = False  # removal policies that match no member are errors
    health_gate: bool = False  # a batch with unhealthy members is the last

    @classmethod
    def of(cls, metadata: JsonMapping) -> Extras:
        """Read the extensions from the metadata.

        Raises:
            ProviderError: lists all faults.
        """
        recorded = metadata.get(KEY)
        if recorded is None:
            return cls()
        if not isinstance(recorded, Mapping):
            raise _failure([f"{KEY} must be a map"])
        faults = [f'unknown key "{key}"' for key in recorded if key not in cls.__slots__]
        victims, remove = recorded.get("victims", "oldest"), recorded.get("remove", [])
        if victims not in VICTIMS:
            faults.append(f"victims must be one of {', '.join(VICTIMS)}")
        if not isinstance(remove, list) or not all(isinstance(name, str) for name in remove):
            faults.append("remove must be a list of names or ids")
        flags = {key: recorded.get(key, False) for key in ("strict", "health_gate")}
        faults += [
            f"{key} must be true or false" for key, flag in flags.items() if not isinstance(flag, bool)
        ]
        if faults:
            raise _failure(faults)
        return cls(victims, tuple(remove), **flags)


def _failure(faults: list[str]) -> ProviderError:
    return ProviderError(f"metadata.{KEY}: {'; '.join(faults)}", kind="StackValidationFailed")
