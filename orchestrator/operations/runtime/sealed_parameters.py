"""The hidden values of a revision: of its parameters, and of the defaults in its environment.

They are encrypted together in `revision.sealed`; the columns in the open have None in their place. Which
defaults are hidden is decided by all templates of the tree: nested stacks get them from the environment.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.security.encryption import Cipher
from orchestrator.template.environment import Environment

# The entry with the defaults, beside one entry for each hidden parameter: no name has a NUL.
DEFAULTS: Final = "\0parameter_defaults"


def sealed_values(
    cipher: Cipher, parameters: JsonMapping, environment: Environment, hidden: Collection[str]
) -> bytes | None:
    """Encrypt hidden parameters, and the environment's defaults for the names in `hidden`.

    None if there are none.
    """
    defaults = {name: value for name, value in environment.parameter_defaults.items() if name in hidden}
    values = {**parameters, **({DEFAULTS: defaults} if defaults else {})}
    return cipher.seal(values) if values else None


def without_hidden(environment: Environment, hidden: Collection[str]) -> JsonObject:
    """Return the environment to store in the open: hidden values are None."""
    sections = environment.to_json()
    for section in ("parameters", "parameter_defaults"):
        sections[section] = {
            name: None if name in hidden else value for name, value in sections[section].items()
        }
    return sections


def hidden_parameters(cipher: Cipher, sealed: bytes | None) -> JsonObject:
    """Return the hidden parameters of a revision."""
    opened: dict[str, Any] = dict(cipher.open(bytes(sealed))) if sealed else {}
    opened.pop(DEFAULTS, None)
    return opened


def hidden_defaults(cipher: Cipher, environment: JsonMapping, sealed: bytes | None) -> JsonObject:
    """Return the hidden defaults of a revision with this stored environment."""
    names = _hidden_names(environment)
    if not names or not sealed:
        return {}
    opened = cipher.open(bytes(sealed))
    # Revisions of former versions have the values of their own parameters only.
    defaults: Mapping[str, Any] = opened.get(DEFAULTS) or opened
    return {name: defaults[name] for name in names if name in defaults}


def opened_environment(environment: JsonMapping, defaults: JsonMapping) -> Environment:
    """Return a stored environment with its hidden defaults."""
    made = Environment.parse({"parameters": {}, **environment})
    return made.with_hidden_defaults(defaults) if defaults else made


def _hidden_names(environment: JsonMapping) -> Collection[str]:
    stored = environment.get("parameter_defaults") or {}
    return [name for name, value in stored.items() if value is None]
