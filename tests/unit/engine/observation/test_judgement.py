"""The verdict on a resource, from its recorded properties, an observation and the previous verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engine.observation.differences import MAX_BYTES, Recorded, differences
from orchestrator.engine.observation.drift import DRIFTED, IN_SYNC, PROVEN_STATES, Difference, Drift
from orchestrator.engine.observation.judgement import MISSING, Unlisted, Unobserved, judge
from orchestrator.resources.base import Observation, Property, ResourceType
from orchestrator.template.secret_values import NO_SECRETS, SecretValues


class Machine(ResourceType):
    """A type with properties of each kind."""

    name = "Test::Machine"
    properties: ClassVar = {
        "name": Property("string", "Name.", update_allowed=True),
        "metadata": Property("map", "Pairs.", update_allowed=True),
        "tags": Property("list", "Tags, in any order.", update_allowed=True),
        "device": Property("string", "Set by whoever uses it.", default="", theirs=True),
        "flavor": Property("string", "Size."),
        "password": Property("string", "Secret."),
        "zone": Property("string", "Chosen by the provider."),
    }

    def equal(self, name, before, after):
        if name == "tags":
            return sorted(before or ()) == sorted(after or ())
        return before == after


MACHINE = Machine()
SEEN = Observation(exists=True)
GONE = Observation(exists=False)
ERROR = Observation(exists=True, error="no host")
BUSY = replace(ERROR, busy=True)
UNREADY = Observation(exists=True, ready=False)
FAILED = Drift("FAILED", "no host")
MISSED = Drift("MISSING", MISSING)


def recorded(*, chosen=None, secrets=NO_SECRETS, settled=True, **properties):
    return Recorded(MACHINE, properties, chosen or {}, secrets, settled)


def found(base, **properties):
    return differences(base, properties)


def judged(*evidence, base=None):
    drift = IN_SYNC
    for item in evidence:
        drift = judge(base or recorded(), item, drift)
    return drift


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
properties = st.fixed_dictionaries(
    {},
    optional={
        "name": st.text(max_size=5),
        "metadata": st.dictionaries(st.text(max_size=3), json_values, max_size=3),
        "tags": st.lists(st.text(max_size=2), max_size=3),
        "device": st.text(max_size=3),
        "flavor": st.text(max_size=3),
        "zone": st.text(max_size=3),
    },
)
evidences = st.one_of(
    st.sampled_from([Unlisted(), Unobserved("no answer"), GONE, ERROR, BUSY, UNREADY]),
    properties.map(lambda values: Observation(exists=True, properties=values)),
)
drifts = st.builds(
    Drift,
    st.sampled_from(PROVEN_STATES),
    st.sampled_from(["", "no host", MISSING]),
    st.just(()),
    confirmed=st.booleans(),
    unknown=st.sampled_from(["", "no answer"]),
)


# Differences


def test_a_changed_property_is_reported_with_both_values():
    assert found(recorded(flavor="small"), flavor="large") == (Difference("flavor", "small", "large"),)


def test_members_of_maps_are_reported_one_by_one():
    base = recorded(metadata={"a": 1, "b": {"c": 2, "d": 3}})
    assert found(base, metadata={"a": 1, "b": {"c": 9, "d": 3}, "e": 4}) == (
        Difference("metadata.b.c", 2, 9),
        Difference("metadata.e", None, 4),
    )


def test_a_value_that_the_provider_chose_is_no_difference():
    assert found(recorded(flavor="small"), flavor="small", zone="nova") == ()


def test_a_value_that_the_orchestrator_chose_is_compared():
    base = recorded(chosen={"name": "stack-a-1"})
    assert found(base, name="stack-a-1") == ()
    assert found(base, name=None) == ()
    assert found(base, name="other") == (Difference("name", "stack-a-1", "other"),)


def test_the_template_has_precedence_over_what_the_orchestrator_chose():
    assert found(recorded(chosen={"name": "x"}, name="web"), name="web") == ()


def test_values_that_the_type_calls_equal_are_no_difference():
    assert found(recorded(tags=["a", "b"]), tags=["b", "a"]) == ()


def test_a_property_of_others_is_never_a_difference():
    assert found(recorded(device=""), device="server-1") == ()


def test_empty_values_are_equal():
    assert found(recorded(metadata={}, flavor=""), metadata=None, flavor=None) == ()


def test_undeclared_names_are_not_compared():
    assert found(recorded(), colour="red") == ()


def test_secret_values_are_masked():
    base = recorded(password="old", flavor="s", secrets=SecretValues({"old"}))
    assert found(base, password="new", flavor="l") == (
        Difference("flavor", "s", "l"),
        Difference("password", "******", "******"),
    )
    masked = found(recorded(flavor="s", metadata={"a": "1"}, secrets=None), flavor="l", metadata={"a": "2"})
    assert {(item.expected, item.found) for item in masked} == {("******", "******")}


def test_long_values_are_cut():
    [difference] = found(recorded(flavor="s"), flavor="x" * 10_000)
    assert len(str(difference.found)) < MAX_BYTES + 10


@given(properties)
def test_what_was_built_does_not_differ_from_itself(values):
    assert differences(recorded(**values), values) == ()


@given(properties, properties)
def test_every_difference_belongs_to_a_property_of_the_template(before, after):
    names = {difference.property.partition(".")[0] for difference in differences(recorded(**before), after)}
    assert names <= before.keys() - {"device"}
    assert all(before[name] != after[name] for name in names)


# Verdicts


def test_a_missing_object_is_missing_and_later_back():
    assert judged(GONE).verdict == "MISSING"
    assert judged(GONE, SEEN) == IN_SYNC
    assert judged(GONE, UNREADY) == IN_SYNC


def test_an_absence_after_an_outage_counts_in_two_observations():
    base = recorded()
    first = judge(base, GONE, after_outage=True)
    assert first.verdict == "IN_SYNC"
    assert judge(base, GONE, first) == MISSED
    assert judge(base, GONE, first, after_outage=True) == first  # another outage
    assert judge(base, SEEN, first) == IN_SYNC
    assert judge(base, GONE, MISSED, after_outage=True) == MISSED


def test_an_object_missing_in_a_list_proves_nothing():
    assert judged(Unlisted()) == IN_SYNC
    assert judged(GONE, Unlisted()) == MISSED


def test_an_error_counts_in_two_observations():
    assert judged(ERROR).verdict == "IN_SYNC"
    assert judged(ERROR, ERROR) == FAILED
    assert judged(ERROR, SEEN, ERROR).verdict == "IN_SYNC"
    assert judged(ERROR, UNREADY, ERROR).verdict == "IN_SYNC"


def test_an_error_with_a_task_of_the_provider_does_not_count():
    """Nova goes building, error, building, active within a second."""
    assert judged(BUSY, BUSY, BUSY) == IN_SYNC
    assert judged(ERROR, BUSY, ERROR).verdict == "IN_SYNC"


def test_a_failure_ends_when_the_object_is_well():
    assert judged(ERROR, ERROR, UNREADY) == FAILED
    assert judged(ERROR, ERROR, SEEN) == IN_SYNC


def test_a_failure_keeps_its_first_message():
    other = replace(ERROR, error="another text")
    assert judged(ERROR, other, other) == FAILED


def test_a_change_is_reported_until_it_is_reverted():
    base = recorded(flavor="s")
    changed = replace(SEEN, properties={"flavor": "l"})
    assert judged(changed, base=base).differences == (Difference("flavor", "s", "l"),)
    assert judged(changed, replace(SEEN, properties={"flavor": "s"}), base=base) == IN_SYNC


def test_the_properties_of_a_failed_operation_are_not_compared():
    changed = replace(SEEN, properties={"flavor": "l"})
    assert judged(changed, base=recorded(flavor="s", settled=False)) == IN_SYNC
    assert judged(GONE, base=recorded(flavor="s", settled=False)) == MISSED


def test_an_outage_hides_the_verdict_and_does_not_end_it():
    down = judged(GONE, Unobserved("503"))
    assert (down.verdict, down.unknown, down.state) == ("UNKNOWN", "503", "MISSING")
    assert judged(GONE, Unobserved("503"), Unobserved("504")).unknown == "503"
    assert judged(GONE, Unobserved("503"), GONE) == MISSED
    assert judged(Unobserved("503"), SEEN) == IN_SYNC


@given(evidences, drifts)
def test_only_an_answer_gives_a_fact(evidence, before):
    after = judge(recorded(flavor="s"), evidence, before)
    if isinstance(evidence, Unlisted | Unobserved):
        assert (after.state, after.confirmed, after.reason) == (before.state, before.confirmed, before.reason)
    else:
        assert not after.unknown


@given(evidences, drifts)
def test_missing_needs_an_absent_object(evidence, before):
    after = judge(recorded(flavor="s"), evidence, before)
    if after.state == "MISSING" and before.state != "MISSING":
        assert evidence == GONE


@given(evidences, drifts)
def test_the_same_observation_gives_no_news_in_the_third_round(evidence, before):
    """A round without news writes nothing."""
    base = recorded(flavor="s", metadata={"a": 1})
    second = judge(base, evidence, judge(base, evidence, before))
    assert judge(base, evidence, second) == second


@given(st.lists(evidences, max_size=6))
def test_drift_is_never_reported_without_its_cause(course):
    """Whatever happens: each verdict has its evidence among the observations."""
    drift = judged(*course, base=recorded(flavor="s"))
    if drift.verdict == "MISSING":
        assert GONE in course
    if drift.verdict == "FAILED":
        assert course.count(ERROR) >= 2
    if drift.verdict == "MODIFIED":
        assert any(isinstance(item, Observation) and item.properties for item in course)
    assert drift.verdict in (*DRIFTED, "IN_SYNC", "UNKNOWN")
