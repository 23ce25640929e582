"""Behaviour of each built-in type, beyond the common contract."""

from __future__ import annotations

import pytest

from orchestrator.errors import ProviderError
from orchestrator.resources.builtin.delay import Delay
from orchestrator.resources.builtin.none import NoneResource
from orchestrator.resources.builtin.random_string import CLASSES, RandomString
from orchestrator.resources.builtin.test_resource import TestResource
from orchestrator.resources.builtin.value import ValueResource
from tests.contract.operated import Operated


def made(kind, **properties):
    resource = Operated(kind(), properties)
    resource.create()
    return resource


class TestRandomStrings:
    def test_the_value_is_attribute_and_reference_and_kept_secret(self):
        resource = Operated(RandomString(), {})
        assert resource.create().secret
        observed = resource.observe()
        value = observed.attributes["value"]
        assert len(value) == 32
        assert set(value) <= set(CLASSES["lettersdigits"])
        assert observed.reference_id == value
        assert resource.physical_id == resource.ctx.physical_name

    @pytest.mark.parametrize("name", list(CLASSES))
    def test_a_class_gives_only_its_characters(self, name):
        resource = made(RandomString, length=200, character_classes=[{"class": name}])
        assert set(resource.observe().attributes["value"]) <= set(CLASSES[name])

    def test_hexadecimal_digits_are_upper_case(self):
        assert CLASSES["hexdigits"] == "0123456789ABCDEF"

    def test_every_minimum_is_kept(self):
        resource = made(
            RandomString,
            length=9,
            character_classes=[{"class": "digits", "min": 3}, {"class": "uppercase", "min": 2}],
            character_sequences=[{"sequence": "%!", "min": 4}],
        )
        value = resource.observe().attributes["value"]
        assert len(value) == 9
        assert sum(c.isdigit() for c in value) == 3
        assert sum(c.isupper() for c in value) == 2
        assert sum(c in "%!" for c in value) == 4

    def test_the_remainder_combines_all_parts(self):
        resource = made(
            RandomString,
            length=500,
            character_classes=[{"class": "digits"}],
            character_sequences=[{"sequence": "%!"}],
        )
        assert set(resource.observe().attributes["value"]) == set(CLASSES["digits"] + "%!")

    def test_the_old_name_of_a_class_replaces_the_default(self):
        resource = made(RandomString, sequence="octdigits", length=100)
        assert set(resource.observe().attributes["value"]) <= set(CLASSES["octdigits"])

    def test_two_are_different_and_each_stays_the_same(self):
        item, other = made(RandomString), made(RandomString)
        assert item.observe() == item.observe("CHECK")
        assert item.observe() != other.observe()

    def test_minima_beyond_the_length_are_refused(self):
        sequences = [{"sequence": "ab", "min": 32}]
        resource = Operated(RandomString(), {"character_sequences": sequences})
        (fault,) = resource.kind.validate(resource.ctx.properties, 3600.0)
        assert fault.message == (
            "Length property cannot be smaller than combined character class and character sequence minimums"
        )

    def test_nothing_to_draw_from_is_refused(self):
        resource = Operated(RandomString(), {"character_classes": []})
        assert resource.kind.validate(resource.ctx.properties, 3600.0) != ()

    def test_any_change_replaces_but_writing_a_default_out_is_none(self):
        kind = RandomString()
        assert kind.change({"salt": "a"}, {"salt": "b"}, frozenset({"salt"})) == "replace"
        bare, spelled = Operated(kind, {}), Operated(kind, {"length": "32", "character_classes": None})
        assert bare.ctx.properties == spelled.ctx.properties


class TestValues:
    @pytest.mark.parametrize(
        ("kind", "given", "seen"),
        [
            (None, {"a": [1, None]}, {"a": [1, None]}),
            (None, None, None),
            ("string", 3, "3"),
            ("string", "x", "x"),
            ("number", "3", 3),
            ("number", "3.5", 3.5),
            ("number", 3, 3),
            ("comma_delimited_list", [1, "b"], [1, "b"]),
            ("json", {"a": [1]}, {"a": [1]}),
            ("boolean", "TRUE", True),
            ("boolean", "False", False),
            ("boolean", True, True),
        ],
    )
    def test_the_value_is_converted_to_the_type(self, kind, given, seen):
        resource = made(ValueResource, value=given, **({"type": kind} if kind else {}))
        assert resource.observe().attributes == {"value": seen}

    @pytest.mark.parametrize(
        ("kind", "given"),
        [
            ("number", "x"),
            ("number", [1]),
            ("number", "inf"),
            ("string", {"a": 1}),
            ("comma_delimited_list", 5),
            ("json", "{"),
            ("json", "5"),
            ("boolean", "maybe"),
        ],
    )
    def test_an_inconvertible_value_is_an_error_in_every_verb(self, kind, given):
        resource = Operated(ValueResource(), {"value": given, "type": kind})
        (fault,) = resource.kind.validate(resource.ctx.properties, 3600.0)
        assert fault.property == "value"
        with pytest.raises(ProviderError) as caught:
            resource.create()
        assert (caught.value.kind, str(caught.value)) == ("ValueError", fault.message)

    def test_a_new_value_is_taken_in_place(self):
        resource = made(ValueResource, value=1)
        resource.update(value=2)
        assert resource.observe().attributes == {"value": 2}
        assert resource.kind.change({"value": 1}, {"value": 2}, frozenset({"value"})) == "update"


class TestNone:
    def test_it_takes_anything_and_knows_nothing(self):
        resource = made(NoneResource, anything={"goes": ["here"]})
        assert resource.observe().attributes == {}
        assert resource.kind.has_attribute("whatever")

    def test_its_id_is_random(self):
        assert made(NoneResource).physical_id != made(NoneResource).physical_id

    def test_it_never_changes(self):
        assert NoneResource().change({"a": 1}, {"b": 2}, frozenset({"a", "b"})) == "keep"


class TestTestResources:
    def test_it_shows_the_given_value(self):
        assert made(TestResource, value="v").observe().attributes == {"output": "v"}
        assert made(TestResource).observe().attributes == {"output": "test_string"}

    @pytest.mark.parametrize(
        ("properties", "seconds"),
        [
            ({"wait_secs": 3}, 3.0),
            ({"wait_secs": 3, "action_wait_secs": {"create": 7}}, 7.0),
            ({"wait_secs": 3, "action_wait_secs": {"create": 0, "update": 9}}, 0.0),
            ({"wait_secs": 3, "action_wait_secs": {"update": 9}}, 3.0),
            ({"wait_secs": 1, "attr_wait_secs": 2, "constraint_prop_secs": 4}, 7.0),
        ],
    )
    def test_creation_takes_the_given_time(self, properties, seconds):
        resource = made(TestResource, **properties)
        early, late = resource.observe(elapsed=seconds - 0.25), resource.observe(elapsed=seconds)
        assert late.ready
        if seconds:
            assert (early.exists, early.ready, early.retry_after) == (True, False, 0.25)

    def test_an_unlimited_wait_is_checked_again_only_after_a_signal(self):
        observed = made(TestResource, wait_secs=-1).observe(elapsed=1e9)
        assert (observed.exists, observed.ready, observed.retry_after) == (True, False, None)

    def test_it_fails_after_the_wait_and_for_good(self):
        resource = made(TestResource, fail=True, wait_secs=2)
        assert not resource.observe(elapsed=1).error
        observed = resource.observe(elapsed=2)
        assert (observed.error, observed.error_kind, observed.replaceable) == (
            "Test Resource failed a",
            "ValueError",
            False,
        )

    def test_a_new_value_takes_the_updates_time(self):
        resource = made(TestResource, value="old", action_wait_secs={"update": 5})
        resource.update(value="new")
        assert resource.observe(elapsed=4.5).retry_after == 0.5
        assert resource.observe(elapsed=5).attributes == {"output": "new"}

    def test_another_property_takes_no_time(self):
        resource = made(TestResource, action_wait_secs={"update": 5}, wait_secs=3)
        resource.update(client_name="nova")
        assert resource.observe(elapsed=0).ready

    def test_a_failing_update_keeps_the_old_value(self):
        resource = made(TestResource, value="old")
        resource.update(value="new", fail=True)
        assert resource.observe().error == "Test Resource failed a"
        assert resource.observe("CHECK").attributes == {"output": "old"}

    def test_a_check_does_not_wait_and_does_not_fail(self):
        resource = made(TestResource, wait_secs=100, fail=True)
        observed = resource.observe("CHECK")
        assert (observed.exists, observed.ready, observed.error) == (True, True, "")

    def test_a_check_can_be_asked_for_and_fails_only_without_an_id(self):
        resource = made(TestResource)
        assert resource.kind.can_check
        resource.physical_id = ""
        assert not resource.observe("CHECK").exists

    def test_deletion_takes_its_own_time_and_never_fails(self):
        resource = made(TestResource, wait_secs=9, fail=True, action_wait_secs={"delete": 4})
        resource.delete()
        early = resource.observe(elapsed=3)
        assert (early.exists, early.ready, early.retry_after) == (True, False, 1.0)
        assert not resource.observe(elapsed=4).exists

    def test_deletion_waits_only_if_requested(self):
        resource = made(TestResource, wait_secs=9)
        resource.delete()
        assert not resource.observe().exists

    @pytest.mark.parametrize(
        ("changed", "after", "change"),
        [
            ({"value"}, {"value": "b"}, "update"),
            ({"value"}, {"value": "b", "update_replace": True}, "replace"),
            ({"value", "update_replace"}, {"value": "b", "update_replace": True}, "replace"),
            ({"update_replace"}, {"update_replace": True}, "update"),
            ({"update_replace_value"}, {"update_replace_value": "x"}, "replace"),
            ({"wait_secs"}, {"wait_secs": 1, "update_replace": True}, "update"),
        ],
    )
    def test_it_is_replaced_when_its_new_properties_say_so(self, changed, after, change):
        assert TestResource().change({"value": "a"}, after, frozenset(changed)) == change


class TestDelays:
    def test_it_waits_at_least_the_minimum_and_at_most_the_jitter_more(self):
        resource = made(Delay, min_wait=10, max_jitter=2, jitter_multiplier=3)
        assert not resource.observe(elapsed=9.99).ready
        assert 0 < resource.observe(elapsed=9.99).retry_after <= 6.01
        assert resource.observe(elapsed=16).ready

    def test_the_longest_wait_must_fit_into_the_stacks_timeout(self):
        resource = Operated(Delay(), {"min_wait": 50, "max_jitter": 5, "jitter_multiplier": 2})
        assert not resource.kind.validate(resource.ctx.properties, 60.0)
        (fault,) = resource.kind.validate(resource.ctx.properties, 59.0)
        assert fault.message == "OS::Heat::Delay maximum delay 60s exceeds stack timeout."

    def test_the_jitter_is_drawn_once(self):
        resource = made(Delay, max_jitter=1000)
        assert len({resource.observe().retry_after for _ in range(5)}) == 1
        assert made(Delay, max_jitter=1000).observe().retry_after != resource.observe().retry_after

    @pytest.mark.parametrize("action", ["CREATE", "DELETE", "SUSPEND", "RESUME"])
    def test_it_waits_in_the_actions_listed_only(self, action):
        resource = made(Delay, min_wait=5, actions=[action])
        for tried in ("CREATE", "DELETE", "SUSPEND", "RESUME", "CHECK"):
            assert (resource.observe(tried, 1).retry_after == 4) == (tried == action)

    def test_an_update_takes_no_time_and_counts_from_then_on(self):
        resource = made(Delay, min_wait=0, actions=["DELETE"])
        resource.update(min_wait=5)
        assert resource.observe().ready
        assert resource.observe("DELETE", 1).retry_after == 4

    def test_only_the_actions_that_there_are_may_be_listed(self):
        with pytest.raises(AssertionError):
            Operated(Delay(), {"actions": ["CREATE", "JUMP"]})
