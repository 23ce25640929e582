"""What the author of a template may say of a group beyond what Heat knows.

It stands in the resource's metadata under a key of our own, where any other engine passes over it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from orchestrator.errors import ProviderError
from orchestrator.resources.groups.member_names import Victims

KEY: Final = "orchestrator:group"
VICTIMS: Final = get_args(Victims)


@dataclass(frozen=True, slots=True)
class Extras:
    """Heat's behaviour, unless told otherwise."""

    victims: Victims = "oldest"  # who goes when a scaling group shrinks
    remove: tuple[Any, ...] = ()  # members of a scaling group that are to go, by name or reference id
    strict: bool = False  # removal policies that name nobody are errors
    health_gate: bool = False  # a batch with unhealthy members is the last

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Extras:
        """Read them.

        Raises:
            ProviderError: with everything that is wrong.
        """
        given = metadata.get(KEY)
        if given is None:
            return cls()
        if not isinstance(given, Mapping):
            raise _wrong([f"{KEY} must be a map"])
        faults = [f'unknown key "{key}"' for key in given if key not in cls.__slots__]
        victims, remove = given.get("victims", "oldest"), given.get("remove", [])
        if victims not in VICTIMS:
            faults.append(f"victims must be one of {', '.join(VICTIMS)}")
        if not isinstance(remove, list) or not all(isinstance(one, str) for one in remove):
            faults.append("remove must be a list of names or ids")
        flags = {key: given.get(key, False) for key in ("strict", "health_gate")}
        faults += [
            f"{key} must be true or false" for key, flag in flags.items() if not isinstance(flag, bool)
        ]
        if faults:
            raise _wrong(faults)
        return cls(victims, tuple(remove), **flags)


def _wrong(faults: list[str]) -> ProviderError:
    return ProviderError(f"metadata.{KEY}: {'; '.join(faults)}", kind="StackValidationFailed")
