"""A stack in another region."""

from __future__ import annotations

from orchestrator.testing.samples import Sample
from tests.plugins.region_fixture import as_project

TEMPLATE = """
heat_template_version: 2021-04-16
parameters:
  word: {type: string, default: w}
resources:
  inner:
    type: OS::Heat::TestResource
    properties: {value: {get_param: word}}
outputs:
  word: {value: {get_attr: [inner, output]}}
"""

SAMPLES = (
    Sample(
        "OS::Heat::Stack",
        {"template": TEMPLATE, "context": {"region_name": "north"}},
        changes={
            "template": TEMPLATE.replace("inner", "other"),
            "parameters": {"word": "v"},
            "timeout": 5,
            "context": {"region_name": "south"},
        },
        answers={"context": "replace"},
        fixtures=("region",),
        prepare_context=as_project,
    ),
)
