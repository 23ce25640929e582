"""Custom constraints: checks known by a name (spec/hot-language.md §4.3).

Here are those that need no service. A resource package that can ask a cloud registers its own
with `register`. A check takes one value and returns why it is wrong, None when it is fine.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import re
import zoneinfo
from collections.abc import Callable
from typing import Any, Final

Check = Callable[[Any], str | None]

_CHECKS: Final[dict[str, Check]] = {}

_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_MAC = re.compile(r"[0-9A-Fa-f]{2}(?P<gap>[:-])(?:[0-9A-Fa-f]{2}(?P=gap)){4}[0-9A-Fa-f]{2}")
_MAX_DNS_NAME = 255
_CRON_FIELDS: Final = ((0, 59, ""), (0, 23, ""), (1, 31, ""), (1, 12, "jan"), (0, 7, "sun"), (0, 59, ""))
_CRON_NAMES: Final = {
    "jan": ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    "sun": ["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
}


def register(name: str) -> Callable[[Check], Check]:
    """Make a check known as `name`; a later one of the same name replaces it."""

    def keep(check: Check) -> Check:
        _CHECKS[name] = check
        return check

    return keep


def custom_check(name: str, value: Any) -> str | None:
    """Return what is wrong with `value` by the constraint `name`, in Heat's words, None when nothing is."""
    check = _CHECKS.get(name)
    if check is None:
        return f'"{value}" does not validate {name} (constraint not found)'
    reason = check(value)
    return None if reason is None else f"Error validating value '{value}': {reason}"


@register("ip_addr")
def _ip_addr(value: Any) -> str | None:
    return None if _parses(ipaddress.ip_address, value) else "Invalid IP address"


@register("net_cidr")
def _net_cidr(value: Any) -> str | None:
    if "/" in str(value) and _parses(lambda text: ipaddress.ip_network(text, strict=False), value):
        return None
    return f"Invalid net cidr {value}"


@register("ip_or_cidr")
def _ip_or_cidr(value: Any) -> str | None:
    return (
        None if _ip_addr(value) is None or _net_cidr(value) is None else f"{value} is not a valid IP or CIDR"
    )


@register("mac_addr")
def _mac_addr(value: Any) -> str | None:
    return None if _MAC.fullmatch(str(value)) else "Invalid MAC address."


@register("rel_dns_name")
def _rel_dns_name(value: Any) -> str | None:
    text = str(value)
    if len(text) > _MAX_DNS_NAME:
        return f"'{text}' exceeds the {_MAX_DNS_NAME} character FQDN limit"
    for label in text.removesuffix(".").split("."):
        if not label:
            return "Encountered an empty component."
        if not _LABEL.fullmatch(label):
            return (
                f"Name '{label}' must be 1-63 characters in length, "
                "each of which can only be alphanumeric or a hyphen."
            )
    return None


@register("dns_name")
def _dns_name(value: Any) -> str | None:
    wrong = _rel_dns_name(value)
    if wrong is not None:
        return wrong
    last = str(value).removesuffix(".").rpartition(".")[2]
    if "." in str(value).removesuffix(".") and last.isdigit():
        return f"TLD '{last}' must not be all numeric"
    return None


@register("dns_domain")
def _dns_domain(value: Any) -> str | None:
    if not value:  # an empty domain takes the name away
        return None
    if not str(value).endswith("."):
        return f"'{value}' must end with '.'."
    return _dns_name(value)


@register("iso_8601")
def _iso_8601(value: Any) -> str | None:
    return (
        None
        if _parses(dt.datetime.fromisoformat, value)
        else f"{value!r} is not a time in the form of ISO 8601"
    )


@register("expiration")
def _expiration(value: Any) -> str | None:
    try:
        when = dt.datetime.fromisoformat(str(value))
    except ValueError:
        return f"Expiration {value} is invalid: not a time in the form of ISO 8601"
    when = when if when.tzinfo else when.replace(tzinfo=dt.UTC)
    return None if when > dt.datetime.now(dt.UTC) else f"Expiration {value} is invalid: it is in the past"


@register("json_string")
def _json_string(value: Any) -> str | None:
    try:
        json.loads(value)
    except (ValueError, TypeError, RecursionError) as error:
        return f"JSON string error: {error}"
    return None


@register("timezone")
def _timezone(value: Any) -> str | None:
    try:
        zoneinfo.ZoneInfo(str(value))
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return f"Invalid timezone: '{value}'"
    return None


@register("cron_expression")
def _cron_expression(value: Any) -> str | None:
    fields = str(value).split()
    if len(fields) not in (5, 6):
        return f"Invalid CRON expression: it has {len(fields)} fields, not 5 or 6"
    for text, (low, high, names) in zip(fields, _CRON_FIELDS, strict=False):
        for part in text.lower().split(","):
            if not _is_cron_part(part, low, high, _CRON_NAMES.get(names, [])):
                return f"Invalid CRON expression: [{text}] is not acceptable"
    return None


@register("test_constr")
def _test_constr(value: Any) -> str | None:  # noqa: ARG001 - only ever slow, and that is the resource's own waiting here
    return None


def _is_cron_part(part: str, low: int, high: int, names: list[str]) -> bool:
    """Whether `part` is ``*``, ``n``, ``a-b``, any with ``/step``, or ``l`` (last), within the bounds."""
    span, slash, step = part.partition("/")
    if slash and not (step.isdecimal() and int(step) > 0):
        return False
    if span in ("*", "l"):
        return True
    first, dash, last = span.partition("-")
    ends = [first, last] if dash else [first]
    return all(end in names or (end.isdecimal() and low <= int(end) <= high) for end in ends)


def _parses(parse: Callable[[str], object], value: Any) -> bool:
    try:
        parse(str(value))
    except ValueError:
        return False
    return True
