"""Valid cron expressions, and the messages for invalid expressions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.schema.constraint_checks import cron_fault

FINE = """
* * * * *
*/5 0-6,20 1 jan mon-fri
0 0 * * 7
0 0 l * *
0 0 15w * *
0 0 ? * mon
0 0 * * mon#2
0 0 * * l5
0 0 * * L5,1#2
0 22-2 * * *
0 0 * * fri-mon
*/61 * * * *
1/5 * * * *
r r(1-5) * * r/2
0 0 31 2 *
0 0 * DEC SUN
* * * * * 59
* * * * * 0 2020-2030
@daily
@HOURLY
""".strip().splitlines()


@pytest.mark.parametrize("text", [*FINE, "  *\t* * * *  "])
def test_it_is_a_wait_handle(text):
    assert cron_fault(text) is None


COLUMNS = "Exactly 5, 6 or 7 columns has to be specified for iterator expression."
WRONG = [
    ("* * * *", COLUMNS),
    ("* * * * * * * *", COLUMNS),
    ("@reboot", COLUMNS),
    ("60 * * * *", "[60 * * * *] is not acceptable, out of range"),
    ("* * 0 * SUN", "[* * 0 * SUN] is not acceptable, out of range"),
    ("* * * 0/5 *", "[* * * 0/5 *] is not acceptable, out of range"),
    ("* * * * 8", "[* * * * 8] is not acceptable, out of range"),
    ("* * * * * * 1969", "[* * * * * * 1969] is not acceptable, out of range"),
    ("0-60 * * * *", "0-60 * * * * is out of bands"),
    ("a * * * *", "[a * * * *] is not acceptable"),
    ("0,,1 * * * *", "[0,,1 * * * *] is not acceptable"),
    ("* * W * *", "[* * w * *] is not acceptable"),
    ("*-5 * * * *", "[*-5 * * * *] is not acceptable"),
    ("1.5 * * * *", "[1.5 * * * *] is not acceptable"),
    ("jan * * * *", "[jan * * * *] is not acceptable"),
    ("\u0663 * * * *", "[\u0663 * * * *] is not acceptable"),
    ("-1 * * * *", "[-1 * * * *] is not acceptable, negative numbers not allowed"),
    ("*/0 * * * *", "[*/0 * * * *] step '0' in field 0 is not acceptable"),
    (
        "? * * * *",
        "[? * * * *] is not acceptable. Question mark can only used in day_of_month or day_of_week",
    ),
    ("* * ?/2 * *", "[* * ?/2 * *] is not acceptable. Question mark can not used with other characters"),
    ("* * 32w * *", "[* * 32w * *] is not acceptable, nearest weekday day value '32' out of range"),
    ("* * * * mon#6", "[* * * * mon#6] is not acceptable. Invalid day_of_week value: '6'"),
    ("* * * * l8", "[* * * * l8] is not acceptable, out of range"),
    (
        "* * * * mon,l5",
        "day-of-week field does not support mixing literal values and nth day of week syntax.",
    ),
    ("h * * * *", "Hashed definitions must include hash_id"),
    ("r(5-1) * * * *", "Range end must be greater than range begin"),
    ("r(0-60) * * * *", "[r(0-60)] is not acceptable, out of range"),
]


@pytest.mark.parametrize(("text", "fault"), WRONG)
def test_it_is_none_and_why(text, fault):
    assert cron_fault(text) == fault


@given(st.lists(st.text("0123456789*/-,lwr#?hjan()", max_size=6), max_size=8).map(" ".join))
def test_neither_case_nor_blanks_matter(text):
    assert (cron_fault(text) is None) == (cron_fault(f" {text.upper()}\t") is None)
