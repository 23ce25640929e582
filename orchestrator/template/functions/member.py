"""`member`: a part of a group member's definition, for the templates that group types generate
(`template/group_template.py`).

No version of the language contains it. Its result is a value, in which functions are not evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from orchestrator.template.function_view import UNKNOWN, View
from orchestrator.template.functions.registry import Function, FunctionError, References
from orchestrator.template.secret_values import SecretValues

NAME: Final = "member"
SECRETS: Final = ""  # the key beside the digests: the texts of secret values
INDEXED: Final = "properties"  # the key whose texts may contain the member's name


def member(view: View, args: Any) -> Any:
    """``{member: [parameter, digest, name, key]}``: a key of one of the definitions in a parameter."""
    parameter, digest, name, key = args
    table = view.parameter(parameter)
    if table is UNKNOWN:
        return UNKNOWN
    definition = table.get(digest)
    if definition is None:
        raise FunctionError(f"The definition of the member {name} does not exist any more")
    return part_of(definition, name, key)


def member_secrets(view: View, args: Any) -> SecretValues | None:
    """Return the secrets in the result of `member`; None: any of it may be secret."""
    parameter, _, name, _ = args
    table = view.parameter(parameter)
    if table is UNKNOWN or SECRETS not in table:
        return None
    index_vars = {
        definition["index_var"]
        for definition in table.values()
        if isinstance(definition, Mapping) and definition.get("index_var")
    }
    texts = table[SECRETS]
    return SecretValues([*texts, *(text.replace(var, name) for var in index_vars for text in texts)])


def with_secrets(parameters: Mapping[str, Any], secrets: SecretValues | None) -> dict[str, Any]:
    """Return the parameters of a group's child with the known secrets of its definitions."""
    if secrets is None:
        return dict(parameters)
    return {
        name: {**table, SECRETS: sorted(secrets.texts)} if secrets.found_in(table) else table
        for name, table in parameters.items()
    }


def part_of(definition: Mapping[str, Any], name: str, key: str) -> Any:
    """Return a key of a definition, for the member `name`."""
    value, index_var = definition.get(key), definition.get("index_var")
    return indexed(value, index_var, name) if index_var and key == INDEXED else value


def indexed(value: object, index_var: str, name: str) -> Any:
    """Return a value with the member's name in place of `index_var` in every text, keys apart."""
    if isinstance(value, str):
        return value.replace(index_var, name)
    if isinstance(value, Mapping):
        return {key: indexed(item, index_var, name) for key, item in value.items()}
    if isinstance(value, list):
        return [indexed(item, index_var, name) for item in value]
    return value


def _check(args: object, references: References) -> None:
    if not isinstance(args, list) or len(args) != 4 or not all(isinstance(arg, str) for arg in args):
        raise ValueError(f'Incorrect arguments to "{NAME}"')
    references.parameters.add(args[0])


MEMBER: Final = Function(NAME, raw=True, call=member, check=_check)
