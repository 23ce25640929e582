"""Text becomes plain data, within limits, with the location of each fault."""

import gc
import textwrap

import pytest

from orchestrator.errors import InvalidTemplate, LimitExceeded
from orchestrator.template.parse import Limits, locate, parse

LIMITS = Limits()


def refusal(text, limits=LIMITS, what="template"):
    with pytest.raises(InvalidTemplate) as caught:
        parse(text, limits, what)
    return caught.value.diagnostics[0]


def test_json_and_yaml_of_the_same_document_are_the_same():
    assert parse('{"a": [1, 2.5, true, null, "x"]}', LIMITS) == parse("a: [1, 2.5, yes, ~, x]", LIMITS)


def test_dates_stay_texts_wherever_they_are():
    assert parse("2013-05-23: {a: 2013-05-23, b: 2001-12-14t21:59:43.10-05:00}", LIMITS) == {
        "2013-05-23": {"a": "2013-05-23", "b": "2001-12-14t21:59:43.10-05:00"}
    }


def test_keys_become_texts_as_json_writes_them():
    assert parse("{1: a, 2.5: b, yes: c, ~: d, 1.0e+20: e}", LIMITS) == {
        "1": "a",
        "2.5": "b",
        "true": "c",
        "null": "d",
        "1e+20": "e",
    }


def test_percent_signs_in_a_text_are_no_directives():
    script = "".join(f"  %TAG {n}\n" for n in range(200))
    assert parse(f"a: |\n{script}", LIMITS)["a"].count("%TAG") == 200


@pytest.mark.parametrize("text", ["", b"", "# only a comment\n", "---\n", "~"])
def test_an_empty_text_is_an_empty_mapping(text):
    assert parse(text, LIMITS) == {}


@pytest.mark.parametrize("text", ["- a", "[]", "5", "text", '"text"', '["a"]'])
def test_a_body_that_is_not_a_mapping_is_refused_with_heats_message(text):
    assert refusal(text).message == "The template is not a JSON object or YAML mapping."


def test_a_yaml_fault_has_line_column_and_source():
    fault = refusal("resources:\n  a: [1, 2\n  b: 3\n")
    assert fault.message.startswith("Error parsing template [root stack] while parsing a flow sequence")
    assert 'in "template", line 3, column 4:\n      b: 3\n       ^' in fault.message
    assert (fault.line, fault.column, fault.excerpt) == (3, 4, "  b: 3")


def test_a_wide_line_is_quoted_around_the_fault():
    fault = refusal('{"a": "' + "x" * 5000 + '", "b": !nope 1}')
    assert '"b": !nope 1' in fault.excerpt
    assert len(fault.excerpt) < 200


def test_merge_keys_yield_to_explicit_keys_and_the_first_source_wins():
    text = """
        base: &base {a: 1, b: 1}
        more: &more {b: 2, c: 2}
        one: {<<: *base, b: 9}
        two: {<<: [*base, *more], d: 4}
        """
    document = parse(textwrap.dedent(text), LIMITS)
    assert document["one"] == {"a": 1, "b": 9}
    assert document["two"] == {"a": 1, "b": 1, "c": 2, "d": 4}


def test_a_quoted_merge_key_is_an_ordinary_key():
    assert parse('"<<": {a: 1}', LIMITS) == {"<<": {"a": 1}}


def test_of_a_key_given_twice_the_last_counts_and_a_warning_says_where():
    warnings = []
    assert parse("a: 1\nb: 2\na: 3\n", LIMITS, warnings=warnings) == {"a": 3, "b": 2}
    assert [(w.code, w.line, w.column, w.severity) for w in warnings] == [("duplicate-key", 3, 1, "warning")]


def test_a_repeated_key_in_json_is_reported_as_well():
    warnings = []
    text = '{"a": {"b": "{\\"c\\": 1, \\"c\\": 2}", "b": 2},\n "d": {"b": 1},\n\t"a": 3}'
    assert parse(text, LIMITS, warnings=warnings) == {"a": 3, "d": {"b": 1}}
    assert [(w.code, w.line, w.column) for w in warnings] == [
        ("duplicate-key", 1, 37),
        ("duplicate-key", 3, 2),
    ]


def test_a_hundred_of_millions_of_repeated_keys_are_reported():
    warnings = []
    parse("a: 1\n" * 5_000, LIMITS, warnings=warnings)
    assert len(warnings) == 100


def test_a_merge_key_may_be_spelled_out_by_its_tag():
    text = "base: &base {a: 1}\none: {!!merge x: *base}\ntwo: {! <<: *base}\nthree: {! '<<': *base}\n"
    document = parse(text.replace("! '<<'", "!!str '<<'"), LIMITS)
    assert document["one"] == document["two"] == {"a": 1}
    assert document["three"] == {"<<": {"a": 1}}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["a: é", '{"a": "é"}'])
def test_a_text_with_a_byte_order_mark_is_read_in_its_encoding(text, encoding):
    data = text.encode(encoding) if encoding == "utf-8-sig" else f"\ufeff{text}".encode(encoding)
    assert parse(data, LIMITS) == {"a": "é"}


def test_the_collector_of_cycles_is_left_as_it_was_found():
    parse("a: 1", LIMITS)
    assert gc.isenabled()
    refusal("a: [")
    assert gc.isenabled()
    gc.disable()
    try:
        parse("a: 1", LIMITS)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_long_digits_inside_a_text_are_no_number():
    text = '{"a": "x: 99999999999999999999999", "b": 1234567890123456789}'
    assert parse(text, LIMITS) == {"a": "x: 99999999999999999999999", "b": 1234567890123456789}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[" * 200_000, "too-deep"),
        ("{a: " * 200_000, "too-deep"),
        ("{" * 200_000, "bad-key"),
        ("- " * 200_000 + "x", "too-deep"),
        ('{"a":' * 300 + "1" + "}" * 300, "too-deep"),
        ('{"a":' * 3000 + "1" + "}" * 3000, "too-deep"),
        ("a: &a [*a]", "self-reference"),
        ("a: &a {<<: *a}", "self-reference"),
        ("a: *nowhere", "yaml-syntax"),
        ("a: !Ref b", "bad-tag"),
        ("a: !!python/object:os.system [b]", "bad-tag"),
        ("a: !!binary aGVsbG8=", "bad-scalar"),
        ("? [a]\n: b", "bad-key"),
        ("{<<: 5}", "bad-merge"),
        ("a: 0x_", "bad-scalar"),
        ("a: .inf", "bad-scalar"),
        ("a: " + "9" * 100_000, "bad-scalar"),
        ('{"a": 18446744073709551616}', "bad-scalar"),
        ("a: -9223372036854775809", "bad-scalar"),
        ("a: " + "1:" * 300_000 + "1", "bad-scalar"),
        ("a\n---\nb", "yaml-syntax"),
        ("\ud800: 1", "yaml-syntax"),
        (b"\xff\xfe\x00", "unreadable"),
        ("".join(f"%TAG !a{n}! tag:x\n" for n in range(200_000)) + "--- {}", "too-large"),
        ("".join(f"%TAG !a{n}! tag:x\r" for n in range(200_000)), "too-large"),
        ("# ---\n" + "".join(f"%TAG !a{n}! tag:x\n" for n in range(200_000)) + "--- {}", "too-large"),
        ("--- {}\n...\n" + "".join(f"%TAG !a{n}! tag:x\n" for n in range(200_000)) + "--- {}", "too-large"),
        (b"a: \x01", "unreadable"),
        (b"a: \xc3\x28", "unreadable"),
        (b"]   \xc0", "yaml-syntax"),
    ],
)
def test_hostile_and_broken_texts_are_refused(text, code):
    assert refusal(text).code == code


def test_a_billion_laughs_are_refused_for_their_size():
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]")
    assert refusal("\n".join(lines)).code == "too-large"


def test_a_long_text_repeated_by_aliases_is_refused_for_its_size():
    assert refusal("a: &a " + "x" * 100_000 + "\nb: [" + "*a, " * 100 + "]").code == "too-large"


def test_depth_includes_aliases():
    limits = Limits(max_depth=6)
    assert parse("a: &a [[[x]]]\nb: [*a]", limits)
    assert refusal("a: &a [[[x]]]\nb: [[[*a]]]", limits).code == "too-deep"


def test_numbers_of_64_bits_are_kept_exactly():
    assert parse('{"a": 18446744073709551615, "b": -9223372036854775808}', LIMITS) == {
        "a": 2**64 - 1,
        "b": -(2**63),
    }


def test_a_number_too_large_in_json_is_reported_with_its_place():
    fault = refusal('{"ids": [\n  1, 18446744073709551616]}')
    assert (fault.line, fault.column) == (2, 6)
    assert parse('{"id": "18446744073709551616"}', LIMITS) == {"id": "18446744073709551616"}


def test_a_text_over_the_size_limit_is_a_limit_exceeded():
    with pytest.raises(LimitExceeded) as caught:
        parse("a: 12345678", Limits(max_bytes=10))
    assert str(caught.value) == (
        "Request limit exceeded: Template size (11 bytes) exceeds maximum allowed size (10 bytes)."
    )


def test_more_values_than_allowed_are_refused():
    assert refusal('{"a": [1, 2, 3, 4, 5]}', Limits(max_nodes=4)).code == "too-large"


def test_places_are_found_again_by_path():
    text = "resources:\n  a:\n    properties:\n      p: {get_param: x}\n      q:\n      - 1\n      - z: 1\n"
    paths = [
        ("resources", "a", "properties", "p", "get_param"),
        ("resources", "a", "properties", "q", 1, "z"),
    ]
    assert locate(text, paths) == {paths[0]: (4, 11), paths[1]: (7, 9)}


def test_a_path_that_is_not_in_the_text_gets_its_nearest_parents_place():
    assert locate("a:\n  b: {c: 1}\n", [("a", "b", "nope", 3), ("z",)]) == {
        ("a", "b", "nope", 3): (2, 3),
        ("z",): (1, 1),
    }


def test_places_are_found_in_json_with_tabs_and_in_keys_that_are_no_texts():
    assert locate('{\n\t"a":\t{"b": 1}\n}', [("a", "b")]) == {("a", "b"): (2, 8)}
    assert locate("? [x]\n: y\n1: {2: z}\n", [("1", "2")]) == {("1", "2"): (3, 5)}


def test_documents_only_valid_for_the_slow_parser_are_accepted_with_a_warning():
    warnings = []
    text = "a:\n  b: {get_attr:[c, d]}\n"
    assert parse(text, Limits(), warnings=warnings) == {"a": {"b": {"get_attr": ["c", "d"]}}}
    [warning] = warnings
    assert (warning.code, warning.severity, warning.line) == ("loose-yaml", "warning", 2)


def test_a_large_text_gets_no_second_chance():
    text = "a: {get_attr:[c, d]}\n" + "# " + "x" * 300_000
    with pytest.raises(InvalidTemplate):
        parse(text, Limits())
