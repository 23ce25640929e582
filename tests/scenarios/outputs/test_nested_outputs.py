"""Outputs that use a faulty output of a nested stack report the fault, with Heat's message
(docs/internals/rest-api.md §9).
"""

from __future__ import annotations

from orchestrator.operations.outputs.outputs import resolve_outputs

LEAF = """
heat_template_version: 2021-04-16
resources:
  a: {type: OS::Heat::TestResource, properties: {value: v}}
outputs:
  good: {value: {get_attr: [a, output]}}
  bad: {value: {get_param: nobody}}
  none: {value: null}
"""
MIDDLE = """
heat_template_version: 2021-04-16
resources:
  leaf: {type: leaf.yaml}
outputs:
  good: {value: {get_attr: [leaf, good]}}
  bad: {value: {get_attr: [leaf, bad]}}
  none: {value: {get_attr: [leaf, none]}}
"""


def test_the_error_of_a_nested_output_is_the_error_of_its_user(world):
    outputs = {name: {"value": {"get_attr": ["middle", name]}} for name in ("good", "bad", "none")}
    outputs["also"] = {"value": {"list_join": ["-", ["x", {"get_attr": ["middle", "bad"]}]]}}
    files = {"middle.yaml": MIDDLE, "leaf.yaml": LEAF}
    uuid = world.create("s", {"middle": {"type": "middle.yaml"}}, outputs=outputs, files=files)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    result = {
        resolve_output.key: (resolve_output.value, resolve_output.error)
        for resolve_output in resolve_outputs(world.database, world.cipher, world.stack_row("s"))
    }
    error = "Error in middle output bad: Error in leaf output bad: The Parameter (nobody) was not provided."
    assert result == {"good": ("v", None), "none": (None, None), "bad": (None, error), "also": (None, error)}
