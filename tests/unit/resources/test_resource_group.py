"""OS::Heat::ResourceGroup and OS::Heat::ResourceChain: the desired state of their child."""

from __future__ import annotations

import pytest

from orchestrator.errors import ProviderError
from orchestrator.resources.groups.group_metadata import KEY
from orchestrator.resources.groups.resource_chain import ResourceChain
from orchestrator.resources.groups.resource_group import ResourceGroup
from orchestrator.template.group_template import Members
from orchestrator.template.member_attributes import attribute_at, unmarked
from tests.unit.resources.group_world import Operated

ROLLING = {"rolling_update": {"max_batch_size": 1}}


def definition(value="v"):
    return {"type": "T", "properties": {"value": value, "gone": None}}


def group(count=3, value="v", **options):
    keys = ("update_policy", "metadata", "timeout")
    aside = {key: options.pop(key) for key in keys if key in options}
    return Operated(ResourceGroup(), {"count": count, "resource_def": definition(value), **options}, **aside)


def listed(*entries):
    return [{"resource_list": list(entries)}]


def values(item):
    return {name: body["properties"]["value"] for name, body in item.child.made.items()}


def test_members_are_called_by_the_first_numbers():
    item = group(0)
    assert item.apply() == []
    assert [item.apply(count=count) for count in (3, 1, 3)] == [["0", "1", "2"], ["0"], ["0", "1", "2"]]


def test_null_properties_are_left_out_and_metadata_kept():
    item = group(1, resource_def={**definition(), "metadata": {"a": "%index%"}})
    item.apply()
    assert item.child.made["0"]["properties"] == {"value": "v"}
    assert item.child.made["0"]["metadata"] == {"a": "%index%"}


def test_growing_reads_no_members_and_changes_none():
    item = group(3)
    item.apply()
    before = dict(item.child.made)
    item.child.read = 0
    item.apply(count=4)
    assert {name: item.child.made[name] for name in before} == before
    assert item.child.read == 0
    assert Members.parse(item.child.template).text().count("digest") == 1


@pytest.mark.parametrize("entry", ["1", 1, "id-1"])
def test_a_member_is_removed_by_name_number_or_reference(entry):
    item = group(3)
    item.apply()
    assert item.apply(count=2, removal_policies=listed(entry)) == ["0", "2"]


def test_a_removed_member_is_replaced_even_if_the_count_stays():
    item = group(3)
    item.apply()
    assert sorted(item.apply(removal_policies=listed("0"))) == ["1", "2", "3"]
    assert item.attribute("removed_rsrc_list") == ["0"]


def test_a_removed_name_is_never_used_again_unless_the_mode_says_so():
    item = group(2)
    item.apply()
    item.apply(removal_policies=listed("0"))
    assert sorted(item.apply(count=3, removal_policies=[])) == ["1", "2", "3"]
    assert sorted(item.apply(removal_policies_mode="update")) == ["0", "1", "2"]


def test_members_listed_on_create_are_skipped_at_once():
    assert group(2, removal_policies=listed(0, "7")).apply() == ["1", "2"]


def test_an_unknown_member_is_passed_over_or_an_error_but_never_another():
    item = group(3)
    item.apply()
    assert item.apply(removal_policies=listed("nobody", 9)) == ["0", "1", "2"]
    item.metadata = {KEY: {"strict": True}}
    before = item.child.template
    with pytest.raises(ProviderError, match=r"^not among the members of the group: nobody, 9$"):
        item.apply(count=2, removal_policies=listed("nobody", 9))
    assert item.child.template == before


def test_without_a_policy_everybody_is_changed_at_once():
    item = group(3)
    item.apply()
    item.apply(resource_def=definition("w"))
    assert item.way == [["0", "1", "2"]]
    assert values(item) == {"0": "w", "1": "w", "2": "w"}


def test_a_rolling_update_changes_batch_by_batch_the_highest_first():
    item = group(3, update_policy=ROLLING)
    item.apply()
    item.begin(resource_def=definition("w"))
    assert values(item) == {"0": "v", "1": "v", "2": "w"}
    assert item.go_on()
    assert values(item) == {"0": "v", "1": "w", "2": "w"}
    assert item.go_on()
    assert values(item) == {"0": "w", "1": "w", "2": "w"}
    assert not item.go_on()
    assert len(item.data["definitions"]) == 1


def test_pauses_are_between_batches_only():
    item = group(4, update_policy={"rolling_update": {"max_batch_size": 2, "pause_time": 7}})
    item.apply()
    assert item.pauses == []
    item.apply(resource_def=definition("w"))
    assert item.pauses == [7.0]
    assert set(values(item).values()) == {"w"}


def test_a_count_that_changes_needs_no_batches():
    item = group(3, update_policy=ROLLING)
    item.apply()
    item.apply(count=6)
    assert len(item.way) == 1


def test_helpers_keep_enough_in_service():
    item = group(2, update_policy={"rolling_update": {"min_in_service": 2}})
    item.apply()
    item.apply(resource_def=definition("w"))
    assert [len(names) for names in item.way] == [3, 3, 3, 2]
    assert item.names == ["0", "1"]


def test_members_out_of_service_are_the_first_step_of_a_rolling_update():
    item = group(4, update_policy=ROLLING)
    item.apply()
    item.child.unready = {"0", "1"}
    item.begin(resource_def=definition("w"))
    assert item.values("value") == ["w", "w", "v", "v"]
    item.child.unready = set()
    item.go_on()
    assert item.values("value") == ["w", "w", "v", "w"]


def test_the_failed_and_the_removed_go_first_in_a_rolling_update():
    item = group(4, update_policy=ROLLING)
    item.apply()
    item.child.sick = {"1"}
    item.begin(resource_def=definition("w"), removal_policies=listed("0"))
    assert values(item) == {"1": "w", "2": "v", "3": "v"}
    while item.go_on():
        pass
    assert values(item) == {"1": "w", "2": "w", "3": "w", "4": "w"}


def test_a_rolling_update_left_half_done_is_gone_on_with():
    item = group(3, update_policy=ROLLING)
    item.apply()
    item.begin(resource_def=definition("w"))
    item.apply()
    assert [len(names) for names in item.way] == [3, 3]
    assert set(values(item).values()) == {"w"}


def test_a_third_definition_overtakes_a_rolling_update():
    item = group(3, update_policy=ROLLING)
    item.apply()
    item.begin(resource_def=definition("w"))
    item.begin(resource_def=definition("x"))
    assert values(item) == {"0": "v", "1": "v", "2": "x"}
    assert len(item.data["definitions"]) == 2


def test_batches_of_a_new_group():
    item = group(5, update_policy={"batch_create": {"max_batch_size": 2, "pause_time": 1}})
    item.apply()
    assert [len(names) for names in item.way] == [2, 4, 5]
    assert item.pauses == [1.0, 1.0]
    item.apply(count=9)
    assert [len(names) for names in item.way] == [9]


def test_pauses_longer_than_the_stack_may_take_are_refused_before_anything_is_changed():
    policy = {"rolling_update": {"pause_time": 10}, "batch_create": {"pause_time": 10}}
    item = group(3, update_policy=policy, timeout=20)
    with pytest.raises(ProviderError, match="will result in stack update timeout"):
        item.apply()
    assert item.child.template is None
    assert item.again().apply(count=2) == ["0", "1"]


def test_batches_stop_by_themselves_when_members_are_unwell():
    item = group(3, update_policy=ROLLING, metadata={KEY: {"health_gate": True}})
    item.apply()
    item.begin(resource_def=definition("w"))
    item.child.sick = {"0"}  # unhealthy before the batch, and not changed by it
    assert item.go_on()
    item.child.sick = {"1"}
    with pytest.raises(ProviderError, match=r"^Stopped after a batch with unhealthy members: 1$"):
        item.go_on()
    assert values(item) == {"0": "v", "1": "w", "2": "w"}


def test_a_group_child_that_was_changed_directly_becomes_a_group_again():
    item = group(2)
    item.apply()
    item.child.template = '{"heat_template_version": "2021-04-16"}'
    assert item.apply() == ["0", "1"]


def test_attributes_of_a_group():
    item = group(2)
    item.apply()
    assert item.attribute("refs") == ["id-0", "id-1"]
    assert item.attribute("refs_map") == {"0": "id-0", "1": "id-1"}
    assert unmarked(item.attribute("ip")) == ["10.0.0.0", "10.0.0.1"]
    assert unmarked(item.attribute("nobody's")) == [None, None]
    assert attribute_at(item.attribute("nets"), ["a", 0]) == ["0", "1"]
    assert attribute_at(item.attribute("attributes"), ["nets", "a"]) == {"0": ["0"], "1": ["1"]}
    assert unmarked(item.attribute("resource.1")) == "id-1"
    assert attribute_at(item.attribute("resource.1"), ["ip"]) == "10.0.0.1"
    assert item.attribute("resource.1.ip") == "10.0.0.1"
    assert item.attribute("resource.7") is None
    assert item.kind.child_reference_id(item.context(), item.child) == "child-id"


def test_a_large_group_keeps_only_the_requested_attributes():
    item = group(500)
    item.apply()
    item.child.read = 0
    assert item.kind.child_attributes(item.context(), item.child, []) == {}
    assert item.child.read == 0
    result = item.kind.child_attributes(item.context(), item.child, ["refs"])
    assert list(result) == ["refs"]
    assert result["refs"][:3] == ["id-0", "id-1", "id-2"]
    assert {"refs", "refs_map", "attributes", "removed_rsrc_list"} == set(
        item.kind.child_attributes(item.context(), item.child, ["*"])
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"strikt": True}, 'unknown key "strikt"'),
        ({"strict": "yes"}, "strict must be true or false"),
        ({"victims": "mine"}, "victims must be one of oldest, newest, outdated"),
        ({"remove": "a"}, "remove must be a list of names or ids"),
        ([], "must be a map"),
    ],
)
def test_faults_of_our_own_key_are_reported(given, message):
    with pytest.raises(ProviderError, match=message):
        group(1, metadata={KEY: given}).apply()


def chain(*types, **options):
    return Operated(ResourceChain(), {"resources": list(types), "resource_properties": {"a": 1}, **options})


def test_a_chain_has_a_member_per_type_and_each_waits_for_its_predecessor():
    item = chain("A", "B", "A")
    assert item.apply() == ["0", "1", "2"]
    resources = Members.parse(item.child.template).template().resources
    assert [(d.type, sorted(d.requires)) for d in resources.values()] == [
        ("A", []),
        ("B", ["0"]),
        ("A", ["1"]),
    ]
    assert item.attribute("refs") == ["id-0", "id-1", "id-2"]


def test_the_members_of_a_concurrent_chain_do_not_wait():
    item = chain("A", "B", concurrent=True)
    item.apply()
    assert not any(d.requires for d in Members.parse(item.child.template).template().resources.values())


def test_a_longer_chain_keeps_the_members_whose_type_is_the_same():
    item = chain("A", "B")
    item.apply()
    before = dict(item.child.made)
    item.apply(resources=["A", "C", "D"])
    assert item.child.made["0"] == before["0"]
    assert [item.child.made[name]["type"] for name in "012"] == ["A", "C", "D"]
