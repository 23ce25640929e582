"""A dotted path is taken apart into the keys it stands for, for a bounded amount of work."""

import time

from orchestrator.template.fault_locations import keys_of


def test_names_may_contain_dots_and_the_longest_match_wins():
    document = {"resources": {"a": {"b": 1}, "a.b": {"c[0]": [1, {"d": 2}]}}}
    assert keys_of("resources.a.b.c[0][1].d", document) == ("resources", "a.b", "c[0]", 1, "d")
    assert keys_of("resources.a.c", document) == ("resources", "a")
    assert keys_of("resources.a.b", document) == ("resources", "a.b")
    assert keys_of("nothing", document) == ()


def test_a_name_full_of_dots_costs_no_more_than_any_other_name():
    name = "." * 50_000
    began = time.process_time()
    for _ in range(100):
        assert keys_of(f"resources.{name}.properties.p", {"resources": {name: {}}})
    assert time.process_time() - began < 1
