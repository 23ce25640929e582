"""Custom constraints that need no service (docs/internals/hot-language.md §4.3).

A check takes a value and returns the reason why it is invalid: None if it is valid, "" for no further reason.
The reasons are Heat's. Checks are registered under the entry point group `orchestrator.constraints`, like
those of a plugin.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import re
import zoneinfo
from typing import Any, Final

from croniter import croniter

_MAC: Final = tuple(
    re.compile(pattern, re.ASCII | re.IGNORECASE)
    for pattern in (
        r"[0-9a-f]{1,2}(?P<gap>[:-])(?:[0-9a-f]{1,2}(?P=gap)){4}[0-9a-f]{1,2}",
        r"[0-9a-f]{1,4}(?P<gap>[:.-])[0-9a-f]{1,4}(?P=gap)[0-9a-f]{1,4}",
        r"[0-9a-f]{5,6}[:-][0-9a-f]{5,6}",
        r"[0-9a-f]{11,12}",
    )
)
_PREFIX: Final = re.compile(r"0|[1-9][0-9]{0,2}")
_LABEL: Final = re.compile(r"[a-z0-9-]{1,63}")
_MAX_CRON_LENGTH: Final = 1_000  # characters; expanding lists takes time
_MAX_NAME_LENGTH: Final = 255  # characters of a full name
_MIN_DOMAIN_LENGTH: Final = 3  # minimum length that a domain adds to a relative name
_TIME: Final = re.compile(
    r"(?P<year>[0-9]{4})"
    r"(?:-(?P<only_month>[0-9]{1,2})"
    r"|(?:-?(?P<month>[0-9]{2})-?(?P<day>[0-9]{2})|-(?P<short_month>[0-9]{1,2})-(?P<short_day>[0-9]{1,2}))"
    r"(?:[ T](?P<hour>[0-9]{2})(?::?(?P<minute>[0-9]{2})(?::?(?P<second>[0-9]{2})(?:[.,][0-9]+)?)?)?"
    r"(?P<zone>Z|(?P<sign>[+-])(?P<zone_hours>[0-9]{2})(?::?(?P<zone_minutes>[0-9]{2}))?)?)?"
    r")?"
)


def ip_addr(value: object) -> str | None:
    """An IPv4 or IPv6 address, without a zone."""
    return None if _is_address(str(value)) else "Invalid IP address"


def net_cidr(value: object) -> str | None:
    """An address and the length of its prefix, such as ``10.0.0.0/8``."""
    text = str(value)
    if _is_subnet(text):
        return None
    address, slash, length = text.partition("/")
    if slash and ":" not in address:  # an abbreviation such as 10/8
        address = ".".join((address.split(".") + ["0"] * 3)[: max(4, address.count(".") + 1)])
        text = f"{address}/{length}"
    if _names_a_network(address, length.strip() if slash else None):
        return f"'{value}' is not a valid IP subnet"
    return f"Invalid net cidr invalid IPNetwork {text} "


def ip_or_cidr(value: object) -> str | None:
    """Either of the two above."""
    if not isinstance(value, str):
        return f"{value} is not a valid IP or CIDR"
    if "/" in value:
        return None if _is_subnet(value) else f"'{value}' is not a valid IP subnet"
    return None if _is_address(value) else f"'{value}' is not a valid IP address"


def mac_addr(value: object) -> str | None:
    """A hardware address in any of the usual forms."""
    return None if any(form.fullmatch(str(value)) for form in _MAC) else "Invalid MAC address."


def rel_dns_name(value: object) -> str | None:
    """A relative domain name; may be empty."""
    text = _text(value)
    if text.endswith("."):
        return f"'{text}' is a FQDN. It should be a relative domain name."
    if len(text) + _MIN_DOMAIN_LENGTH > _MAX_NAME_LENGTH:
        return (
            f"'{text}' contains '{len(text)}' characters. Adding a domain name will cause it to exceed "
            f"the maximum length of a FQDN of '{_MAX_NAME_LENGTH}'."
        )
    return _name_fault(text)


def dns_name(value: object) -> str | None:
    """A domain name, absolute (with a final dot) or relative; may be empty."""
    return _name_fault(_text(value))


def dns_domain(value: object) -> str | None:
    """An absolute domain name; empty removes the domain."""
    text = _text(value)
    if text and not text.endswith("."):
        return f"'{text}' must end with '.'."
    return _name_fault(text)


def iso_8601(value: object) -> str | None:
    """A time or a date; a year or a month will do."""
    try:
        parse_time(str(value) if isinstance(value, str) else "")
    except ValueError:
        return ""
    return None


def expiration(value: object) -> str | None:
    """A time in the future; may be empty."""
    if value is None or value == "":
        return None
    try:
        when = parse_time(str(value).strip())
    except ValueError as error:
        return f"Expiration {value} is invalid: {error}"
    if when <= dt.datetime.now(dt.UTC):
        return f"Expiration {value} is invalid: Expiration time is out of date."
    return None


def json_string(value: Any) -> str | None:
    """A JSON text; may be empty."""
    if value is None or value == "":
        return None
    try:
        json.loads(value)
    except RecursionError:
        return f"JSON string {value} is invalid: it is nested too deep"
    except (ValueError, TypeError) as error:
        return f"JSON string {value} is invalid: {error}"
    return None


def timezone(value: object) -> str | None:
    """A zone of the tz database; may be empty."""
    text = _text(value)
    if not text:
        return None
    try:
        zoneinfo.ZoneInfo(text)
    except (zoneinfo.ZoneInfoNotFoundError, OSError):  # the name is a folder of zones, or too long
        return f"Invalid timezone: 'No time zone found with key {text}'"
    except ValueError as error:
        return f"Invalid timezone: {error}"
    return None


def cron_expression(value: object) -> str | None:
    """A cron expression; may be empty."""
    text = _text(value)
    fault = cron_fault(text) if text else None
    return None if fault is None else f"Invalid CRON expression: {fault}"


def test_constr(value: object) -> str | None:  # noqa: ARG001 - it only ever takes time, which here is the resource's own
    """Accept any value: the constraint exists for OS::Heat::TestResource."""
    return None


def parse_time(text: str) -> dt.datetime:
    """Return the time of an ISO 8601 text, in UTC unless the text has a zone.

    Raises:
        ValueError: not a time.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"Unable to parse date string {text!r}")
    number = {name: int(digits) for name, digits in match.groupdict("0").items() if digits.isdecimal()}
    month = match["month"] or match["only_month"] or match["short_month"] or 1
    day = match["day"] or match["short_day"] or 1
    zone = dt.timedelta(hours=number["zone_hours"], minutes=number["zone_minutes"])
    return dt.datetime(
        number["year"],
        int(month),
        int(day),
        number["hour"],
        number["minute"],
        number["second"],
        tzinfo=dt.timezone(-zone if match["sign"] == "-" else zone),
    )


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text  # a zone is this machine's own affair


def _is_subnet(text: str) -> bool:
    address, slash, length = text.partition("/")
    longest = 128 if ":" in address else 32
    return bool(slash and _PREFIX.fullmatch(length) and int(length) <= longest and _is_address(address))


def _names_a_network(address: str, length: str | None) -> bool:
    """Whether some would read it as a network: abbreviated, or with a mask for the length."""
    if length is None and ":" not in address:
        address = ".".join((address.split(".") + ["0"] * 3)[: max(4, address.count(".") + 1)])
    try:
        ipaddress.ip_network(address if length is None else f"{address}/{length}", strict=False)
    except ValueError:
        return False
    return length != ""


def _name_fault(text: str) -> str | None:
    if not text:
        return None
    bare = text.removesuffix(".")
    problem = None
    if len(bare) > _MAX_NAME_LENGTH:
        problem = f"'{bare}' exceeds the {_MAX_NAME_LENGTH} character FQDN limit"
    else:
        labels = bare.split(".")
        problem = next((fault for fault in map(_label_fault, labels) if fault), None)
        if problem is None and bare != text and len(labels) > 1 and labels[-1].isdecimal():
            problem = f"TLD '{labels[-1]}' must not be all numeric."
    return None if problem is None else f"'{text}' not in valid format. Reason: {problem}"


def _label_fault(label: str) -> str | None:
    if not label:
        return "Encountered an empty component."
    if label.startswith("-") or label.endswith("-"):
        return f"Name '{label}' must not start or end with a hyphen."
    if not _LABEL.fullmatch(label):
        return (
            f"Name '{label}' must be 1-63 characters long, "
            "each of which can only be alphanumeric or a hyphen."
        )
    return None


def cron_fault(text: str) -> str | None:
    """Return the reason why `text` is not a cron expression, None if it is valid. croniter decides, as in
    Heat.
    """
    if len(text) > _MAX_CRON_LENGTH:
        return f"{len(text)} characters are more than {_MAX_CRON_LENGTH}"
    try:
        croniter.expand(text)
    except Exception as error:  # like Heat: croniter raises several exception types
        return str(error).partition("  Cron:")[0].rstrip()  # the rest describes croniter's internal state
    return None
