"""Whether a text is a cron expression, in the wide form that Heat accepts
(docs/internals/hot-language.md §4.3).

Five columns (minute, hour, day of month, month, day of week), a sixth for seconds and a seventh for years;
``*``, numbers, ranges, which may wrap around, steps, lists, names of months and days, ``?``, ``l`` (the
last), ``15w`` (the nearest weekday), ``mon#2`` and ``l5`` (the second Monday, the last Friday), ``r`` (at
random) and words such as ``@daily``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

WORDS: Final = frozenset({"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"})

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True, slots=True)
class _Column:
    low: int
    high: int
    names: dict[str, int] = field(default_factory=dict)


_DAY: Final = _Column(1, 31)
_WEEKDAY: Final = _Column(0, 7, {name: number for number, name in enumerate(_DAYS)})
_COLUMNS: Final = (
    _Column(0, 59),
    _Column(0, 23),
    _DAY,
    _Column(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _WEEKDAY,
    _Column(0, 59),
    _Column(1970, 2099),
)
_SPAN: Final = re.compile(
    r"(?P<first>\*|[0-9]{1,9}|[a-z]{3})"
    r"(?:-(?P<last>[0-9]{1,9}|[a-z]{3}))?"
    r"(?:/(?P<step>[0-9]{1,9}))?"
)
_RANDOM: Final = re.compile(r"[rh](?:\((?P<first>[0-9]{1,9})-(?P<last>[0-9]{1,9})\))?(?:/[0-9]{1,9})?")
_NEAREST: Final = re.compile(r"([0-9]{1,9})w")
_NTH: Final = re.compile(r"(?:(?P<day>[0-9]{1,9}|[a-z]{3})#(?P<nth>[0-9]{1,9})|l(?P<last>[0-9]{1,9}))")


def cron_fault(text: str) -> str | None:
    """Return why `text` is no cron expression, None when it is one."""
    if text.lower() in WORDS:
        return None
    columns = text.lower().split()
    if len(columns) not in (5, 6, 7):
        return "Exactly 5, 6 or 7 columns has to be specified for iterator expression."
    try:
        for index, (column, written) in enumerate(zip(_COLUMNS, columns, strict=False)):
            _check(column, written, index, text)
    except ValueError as fault:
        return str(fault)
    days = columns[4].split(",")
    if "*" not in days and len({_NTH.fullmatch(day) is None for day in days}) > 1:
        return "day-of-week field does not support mixing literal values and nth day of week syntax."
    return None


def _check(column: _Column, written: str, index: int, shown: str) -> None:
    """Look at one column.

    Raises:
        ValueError: with what is wrong.
    """
    if _RANDOM.fullmatch(written):
        _check_random(column, written)
        return
    if "?" in written:
        if len(written) > 1:
            raise ValueError(f"[{shown}] is not acceptable. Question mark can not used with other characters")
        if column is not _DAY and column is not _WEEKDAY:
            raise ValueError(
                f"[{shown}] is not acceptable. Question mark can only used in day_of_month or day_of_week"
            )
        return
    for item in reversed(written.split(",")):  # the last one's fault is told first
        _check_item(column, item, index, shown)


def _check_random(column: _Column, written: str) -> None:
    match = _RANDOM.fullmatch(written)
    if written[0] == "h":  # which needs a name to draw the same number from again
        raise ValueError("Hashed definitions must include hash_id")
    if match is None or match["first"] is None:
        return
    first, last = int(match["first"]), int(match["last"])
    if last < first:
        raise ValueError("Range end must be greater than range begin")
    if first < column.low or last > column.high:
        raise ValueError(f"[{written}] is not acceptable, out of range")


def _check_item(column: _Column, item: str, index: int, shown: str) -> None:
    if (column is _DAY and _is_day(item, shown)) or (column is _WEEKDAY and _is_nth(item, shown)):
        return
    if item.startswith("-"):
        raise ValueError(f"[{shown}] is not acceptable, negative numbers not allowed")
    match = _SPAN.fullmatch(item)
    if match is None or (match["first"] == "*" and match["last"] is not None):
        raise ValueError(f"[{shown.lower()}] is not acceptable")
    first, last, step = match["first"], match["last"], match["step"]
    if step is not None and int(step) == 0:
        raise ValueError(f"[{shown}] step '{step}' in field {index} is not acceptable")
    if first == "*":
        return
    begin = _number(column, first, shown)
    end = begin if last is None else _number(column, last, shown)
    if (last is not None or step is not None) and max(begin, end) > column.high:
        raise ValueError(f"{shown} is out of bands")
    if not column.low <= begin <= column.high:
        raise ValueError(f"[{shown}] is not acceptable, out of range")


def _is_day(item: str, shown: str) -> bool:
    """Whether `item` is ``l``, the last day of the month, or ``15w``, the weekday nearest to one."""
    nearest = _NEAREST.fullmatch(item)
    if nearest is not None and not _DAY.low <= int(nearest[1]) <= _DAY.high:
        raise ValueError(
            f"[{shown}] is not acceptable, nearest weekday day value '{nearest[1]}' out of range"
        )
    return nearest is not None or item == "l"


def _is_nth(item: str, shown: str) -> bool:
    """Whether `item` is one certain weekday of the month."""
    match = _NTH.fullmatch(item)
    if match is None:
        return False
    if match["last"] is not None:
        if int(match["last"]) > _WEEKDAY.high:
            raise ValueError(f"[{shown}] is not acceptable, out of range")
        return True
    if _number(_WEEKDAY, match["day"], shown) > _WEEKDAY.high:
        raise ValueError(f"[{shown}] is not acceptable, out of range")
    if not 1 <= int(match["nth"]) <= 5:
        raise ValueError(f"[{shown}] is not acceptable. Invalid day_of_week value: '{match['nth']}'")
    return True


def _number(column: _Column, text: str, shown: str) -> int:
    if text.isdecimal():
        return int(text)
    if text in column.names:
        return column.names[text]
    raise ValueError(f"[{shown.lower()}] is not acceptable")
