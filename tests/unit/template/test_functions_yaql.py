"""`yaql` (docs/internals/hot-language.md §5.3): values of expressions, and limits on hostile expressions."""

import os
import signal
import subprocess
import sys
import threading

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as over
from hypothesis import strategies as st

from orchestrator.template.definition import UNKNOWN
from orchestrator.template.functions import yaql_function
from orchestrator.template.functions.time_budget import time_budget
from tests.profiles import examples
from tests.unit.template.functions_stub import UNDECIDED, failed, given, refused, resolved

SERVERS = [{"name": "a", "ip": "1.1.1.1", "n": 3}, {"name": "b", "ip": "2.2.2.2", "n": 1}]
TOO_MUCH = "Expression consumed too much memory"
TOO_LONG = "The expression took too much time or memory"


def yaql(expression, data=None, **options):
    return {"yaql": {"expression": expression, "data": data, **options}}


@pytest.fixture
def short_time_limit():
    """Allow each expression 0.25 s of processor time."""
    yaql_function.configure(seconds=0.25)
    yield
    yaql_function.configure()


@pytest.fixture
def long_time_limit():
    """Allow each expression so much processor time that only the other limits can end it."""
    yaql_function.configure(seconds=60.0)
    yield
    yaql_function.configure()


@pytest.mark.parametrize(
    ("expression", "data", "value"),
    [
        ("$.data", 5, 5),
        ("$", {"a": 1}, {"data": {"a": 1}}),
        ("$.data", [1, {"a": None}], [1, {"a": None}]),
        ("$.data.select($ + 1)", [1, 2], [2, 3]),
        ("$.data.where($.n > 1).select($.ip)", SERVERS, ["1.1.1.1"]),
        ("dict($.data.select([$.name, $.ip]))", SERVERS, {"a": "1.1.1.1", "b": "2.2.2.2"}),
        ("$.data.groupBy($.n).select($[0])", SERVERS, [3, 1]),
        ("$.data.sum()", [3, 2, 1], 6),
        ("$.data.orderBy($)", [3, 1, 2], [1, 2, 3]),
        ("$.data.join(',')", ["a", 1, None, True], "a,1,null,true"),
        ("$.data = null", None, True),
        ("range(200).len()", None, 200),
        ("range(3).select([$, range($)])", None, [[0, []], [1, [0]], [2, [0, 1]]]),
        ("regex('o').split($.data)", "hello world", ["hell", " w", "rld"]),
        ("{1 => 2, true => 3, null => 4}", None, {"1": 3, "null": 4}),
        ("7 / 2", None, 3),
        ("$.data", "é", "é"),
    ],
)
def test_values_of_expressions(expression, data, value):
    assert not refused(yaql(expression, data))
    assert resolved(yaql(expression, data)) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("set(2, 1, 3)", [1, 2, 3]),
        ("$.data.keys()", ["b", "a"]),
        ("$.data.items()", [["b", 1], ["a", 2]]),
        ("datetime(2020, 1, 2)", "2020-01-02T00:00:00+00:00"),
        ("timespan(minutes => 2)", 120.0),
        ("generate(0, $ < 3, $ + 1)", [0, 1, 2]),
        ("{a => set(1)}", {"a": [1]}),
    ],
)
def test_values_without_a_template_type_are_converted(expression, value):
    assert resolved(yaql(expression, {"b": 1, "a": 2})) == value


def test_expression_and_data_may_come_from_functions_and_data_may_be_left_out():
    assert resolved(yaql({"list_join": ["", ["$.da", "ta"]]}, given("list"))) == ["a", "b"]
    assert resolved({"yaql": {"expression": "$"}}) == {"data": {}}
    assert failed(yaql(given("list"))) == 'The "expression" argument to yaql must contain a string.'


FORM = (
    '\'"yaql" syntax should be yaql:\\n              expression: $.data.var1.sum()\\n'
    "              data:\\n                var1: [3, 2, 1]'"
)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("x", 'Arguments to "yaql" must be a map.'),
        (given("map"), 'Arguments to "yaql" must be a map.'),
        ({}, FORM),
        ({"data": 1}, FORM),
        ({"expression": "$", "data": 1, "x": 1}, FORM),
        ({"expression": None, "data": 1}, 'The "expression" argument to yaql must contain a string.'),
        ({"expression": ["a"]}, 'The "expression" argument to yaql must contain a string.'),
        ({"expression": given("list")}, ""),
        ({"expression": "$.data."}, "Bad expression Parse error: unexpected end of statement."),
        (
            {"expression": "a b"},
            "Bad expression Parse error: unexpected 'b' at position 2 of expression 'a b'.",
        ),
        ({"expression": "@"}, "Bad expression Lexical error: illegal character '@' at position 0."),
    ],
)
def test_unresolved_arguments_that_yaql_refuses(args, message):
    assert refused({"yaql": args}) == message


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("nope($)", 'Unknown function "nope"'),
        ("1.nope()", 'Unknown method "nope" for receiver 1'),
        ("1 / 0", "integer division or modulo by zero"),
        ("[][5]", "tuple index out of range"),
        ("{}.nope", "'nope'"),
        ("int(x)", "invalid literal for int() with base 10: 'x'"),
        ("range(201)", "Collection length exceeds 200 elements"),
        ("sequence()", "Collection length exceeds 200 elements"),
        ("1.assert(false, 'boo')", "boo"),
        ("[].first()", "The expression asks for an item of a collection that has none"),
        ("regex(a)", "The result of the expression is a Pattern, which templates do not support"),
        ("float(nan)", "The result of the expression is nan, which templates do not support"),
        ("pow(10, 20)", "The result of the expression is a number of more than 64 bits"),
        ("{[1] => 2}", "unhashable type: 'list'"),
    ],
)
def test_invalid_expressions_fail_with_a_reason(expression, message):
    assert failed(yaql(expression)) == message


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("'a' * 1000000000", TOO_MUCH),
        ("range(100).aggregate($1 + $1, aaaaaaaa)", TOO_MUCH),
        ("range(30).aggregate([$1, $1], 1)", TOO_MUCH),
        ("shiftBitsLeft(1, 1000000000000)", TOO_MUCH),
        ("range(150).aggregate($1 * $1, 10)", TOO_MUCH),
        ("('a' * 9000).replace({a => 'b' * 9000, b => 'c' * 9000})", TOO_MUCH),
        ("pow(10, 1000000000)", TOO_LONG),
        ("round(1, -1000000000)", TOO_LONG),
        ("regex('(a+)+$').matches('" + "a" * 40 + "b')", TOO_LONG),
        ("set(range(40).aggregate([$1, $1], 1))", TOO_LONG),
        ("range(200).select(range(200).select(range(200).sum()).sum())", TOO_LONG),
    ],
)
@pytest.mark.usefixtures("short_time_limit")
def test_a_hostile_expression_is_ended_and_the_next_expression_is_evaluated(expression, message):
    # The speed of the machine decides which of the two limits is reached first.
    with pytest.raises(ValueError, match=f"{TOO_MUCH}|{TOO_LONG}"):
        yaql_function.yaql({"expression": expression, "data": None})
    assert resolved(yaql("$.data + 1", 1)) == 2


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("range(1000000000)", "Collection length exceeds 200 elements"),
        ("def(f, f($)) -> f(1)", "The expression is nested too deeply"),
        ("-" * 5000 + "1", "The expression is nested too deeply"),
    ],
)
@pytest.mark.usefixtures("long_time_limit")
def test_an_expression_beyond_a_size_limit_is_refused_and_the_next_expression_is_evaluated(
    expression, message
):
    with pytest.raises(ValueError, match=message):
        yaql_function.yaql({"expression": expression, "data": None})
    assert resolved(yaql("$.data + 1", 1)) == 2


def test_a_result_has_a_bound_however_it_shares_its_parts():
    assert failed(yaql("range(17).aggregate([$1, $1], 1)")) == TOO_MUCH


def test_an_expression_that_needs_much_memory_costs_its_process_not_ours():
    assert failed(yaql("shiftBitsLeft(1, 4000000000)")) == TOO_MUCH
    assert yaql_function._evaluator._process is None


def test_limits_can_be_set():
    yaql_function.configure(limit_iterators=2, memory_quota=500)
    try:
        assert failed(yaql("range(3)")) == "Collection length exceeds 2 elements"
        assert failed(yaql("'a' * 600")) == TOO_MUCH
    finally:
        yaql_function.configure()
    assert resolved(yaql("range(3)")) == [0, 1, 2]


def test_something_unknown_in_the_data_makes_the_result_unknown():
    assert resolved(yaql("1", {"a": [UNDECIDED]}), strict=False) is UNKNOWN


def test_cached_results_are_not_shared():
    first = resolved(yaql("$.data", ["shared"]))
    first.append("mine")
    assert resolved(yaql("$.data", ["shared"])) == ["shared"]


def test_nondeterministic_expressions_are_evaluated_every_time():
    assert len({str(resolved(yaql("random()"))) for _ in range(5)}) > 1


def test_a_process_that_was_killed_is_replaced():
    resolved(yaql("$.data", "before"))
    process = yaql_function._evaluator._process
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert resolved(yaql("$.data", "after")) == "after"


def test_evaluation_yields_the_processor():
    resolved(yaql("$.data", "slow"))
    pid = yaql_function._evaluator._process.pid
    assert os.getpriority(os.PRIO_PROCESS, pid) > os.nice(0)


def test_threads_get_their_own_answers():
    result = {}

    def ask(n):
        result[n] = [resolved(yaql("$.data * 2", n * 100 + m)) for m in range(10)]

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert result == {n: [2 * (n * 100 + m) for m in range(10)] for n in range(4)}


ALONE = """
import os, sys
from orchestrator.template.functions import yaql_function as y
ask = lambda data: y.yaql({"expression": "$.data", "data": data})
assert ask("parent") == "parent"
assert "yaql" not in sys.modules
mine = y._evaluator._process.pid
child = os.fork()
if child == 0:
    ok = ask("child") == "child" and y._evaluator._process.pid != mine
    y._evaluator.close()
    os._exit(0 if ok else 1)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert ask("parent again") == "parent again" and y._evaluator._process.pid == mine
print(mine)
"""


def test_the_library_stays_out_of_this_process_and_a_fork_has_an_evaluator_of_its_own():
    command = [sys.executable, "-W", "error", "-c", ALONE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    with pytest.raises(ProcessLookupError):  # it ended with its parent
        os.kill(int(done.stdout), 0)


STORABLE = st.characters(exclude_characters="\0", exclude_categories=("Cs",))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(STORABLE, max_size=5),
    lambda held: (
        st.lists(held, max_size=3) | st.dictionaries(st.text(STORABLE, max_size=3), held, max_size=3)
    ),
    max_leaves=10,
)


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@over(VALUES)
def test_data_comes_back_as_it_went_in(value):
    # Not by way of a template, where {"if": …} in the data would be a function.
    assert yaql_function.yaql({"expression": "$.data", "data": value}) == value


@settings(max_examples=examples(100), deadline=None)
@over(st.text("$.data()[]{}=>,'\"+*- 1ax\\\n", max_size=15))
def test_any_text_is_an_expression_or_refused_with_a_reason(text):
    fault = refused(yaql(text))
    assert not fault or fault.startswith("Bad expression ")


@pytest.mark.usefixtures("short_time_limit")
def test_many_expressions_share_a_time_budget():
    """Otherwise a template with a thousand slow expressions would occupy its request for an hour."""
    slow = [yaql(f"pow(9, {10**8 + number})") for number in range(12)]
    with time_budget(0.5):
        reported = [refused(item) or failed(item) for item in slow]
    assert TOO_LONG in reported[0]
    assert "of the request" in reported[-1]
    assert resolved(yaql("1 + 1")) == 2
