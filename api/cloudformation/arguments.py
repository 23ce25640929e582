"""Query parameters: texts by name, lists as `Name.member.1`, structures as `Name.member.1.Field`.

Readers record faults and return an empty value, so that all faults of a query are reported together by
`check`. An empty value counts as absent. Of a paginated list, `NextToken` is the start of the next page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from orchestrator import errors
from orchestrator.json_types import JsonObject

INVALID_VALUE: Final = "A bad or out-of-range value was supplied"
MISSING: Final = "A mandatory input parameter is missing"
COMBINATION: Final = "Parameters that must not be used together were used together"
NOT_SUPPORTED: Final = "not supported here: leave it out"
_MEMBER: Final = re.compile(r"(?P<name>\w+)\.member\.(?P<number>[0-9]{1,6})(?:\.(?P<field>[\w.]+))?")
LARGEST: Final = (1 << 31) - 1
MAX_PAGE: Final = 1_000  # items
MAX_DETAILED_PAGE: Final = 100  # items that are expensive to read
MAX_TOKEN_CHARACTERS: Final = 1_024  # characters

Row = TypeVar("Row")


class QueryFault(errors.InvalidRequest):
    """An invalid query, with Amazon's error code."""

    def __init__(self, code: str, message: str) -> None:
        """Take the code and the message."""
        self.heat_type = code
        super().__init__(message)


class Arguments:
    """The parameters of a query."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        """Take the decoded parameters."""
        self.given = parameters
        self._faults: list[tuple[str, str]] = []

    def check(self) -> None:
        """Return if no fault was recorded so far.

        Raises:
            QueryFault: with the code of the first fault and the messages of all faults.
        """
        if self._faults:
            raise QueryFault(self._faults[0][0], "; ".join(message for _, message in self._faults))

    def text(self, *names: str) -> str | None:
        """Return the value of the first of `names` that is given."""
        return next((self.given[name] for name in names if self.given.get(name)), None)

    def required(self, name: str) -> str:
        """Return the value of `name`; record a fault if it is missing."""
        value = self.text(name)
        if value is None:
            self.missing(name)
        return value or ""

    def boolean(self, name: str) -> bool | None:
        """Return a boolean, case-insensitive."""
        value = self.text(name)
        if value is not None and value.lower() not in {"true", "false"}:
            self.invalid(f"{name} must be true or false, not {value}")
        return None if value is None else value.lower() == "true"

    def integer(self, name: str) -> int | None:
        """Return a positive integer."""
        value = self.text(name)
        if value is None:
            return None
        number = int(value) if value.isascii() and value.isdigit() and len(value) <= len(str(LARGEST)) else 0
        if not 1 <= number <= LARGEST:
            self.invalid(f"{name} must be a whole number above 0, not {value}")
        return number

    def choice(self, name: str, among: Iterable[str]) -> str | None:
        """Return a value out of `among`."""
        value = self.text(name)
        if value is not None and value not in among:
            self.invalid(f"{name} must be one of {', '.join(among)}, not {value}")
        return value

    def members(self, name: str) -> list[str]:
        """Return a list of texts."""
        return [fields[""] for fields in self.structures(name) if "" in fields]

    def structures(self, name: str) -> list[dict[str, str]]:
        """Return a list of structures in the order of their numbers; a plain text is the field ""."""
        fields: dict[int, dict[str, str]] = {}
        for key, value in self.given.items():
            match = _MEMBER.fullmatch(key)
            if match is not None and match["name"] == name:
                fields.setdefault(int(match["number"]), {})[match["field"] or ""] = value
        return [fields[number] for number in sorted(fields)]

    def is_given(self, name: str) -> bool:
        """Whether `name` was given, including an empty list."""
        return name in self.given or any(key.startswith(f"{name}.") for key in self.given)

    def unsupported(self, *names: str) -> None:
        """Reject parameters that the server would silently not honour."""
        for name in names:
            inside = any(key.startswith(f"{name}.") for key in self.given)
            if inside or self.text(name) not in {None, "false"}:
                self.invalid(f"{name} is {NOT_SUPPORTED}")

    def not_both(self, name: str, other: str) -> None:
        """Reject two contradictory parameters."""
        if self.text(name) is not None and self.text(other) is not None:
            self.fault("InvalidParameterCombination", f"{COMBINATION}:{name} and {other}")

    def missing(self, name: str) -> None:
        """Record a missing parameter."""
        self.fault("MissingParameter", f"{MISSING}:{name}")

    def invalid(self, message: str) -> None:
        """Record an invalid value."""
        self.fault("InvalidParameterValue", f"{INVALID_VALUE}:{message}")

    def fault(self, code: str, message: str) -> None:
        """Record a fault."""
        self._faults.append((code, message))


def token(arguments: Arguments) -> str | None:
    """Return the start of the requested page; None for the first page."""
    text = arguments.text("NextToken")
    if text is not None and len(text) > MAX_TOKEN_CHARACTERS:
        arguments.invalid("NextToken is none of ours")
    return text


def page(rows: Iterable[Row], size: int, after: Callable[[Row], str]) -> tuple[list[Row], JsonObject]:
    """Return at most `size` rows and the token of the next page. `rows` has at most a single extra row."""
    found = list(rows)
    if len(found) <= size:
        return found, {}
    return found[:size], {"NextToken": after(found[size - 1])}
