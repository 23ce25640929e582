"""Types whose thing is a stack made from a template of the user's."""

from __future__ import annotations

from orchestrator.testing.samples import Sample

TEMPLATE = """
heat_template_version: 2021-04-16
parameters:
  value: {type: string, default: v}
resources:
  inner:
    type: OS::Heat::Value
    properties: {value: {get_param: value}}
outputs:
  value: {value: {get_attr: [inner, value]}}
"""

SAMPLES = (
    Sample(
        "AWS::CloudFormation::Stack",
        {"TemplateURL": "https://templates.example/one.yaml"},
        files={
            "https://templates.example/one.yaml": TEMPLATE,
            "https://templates.example/two.yaml": TEMPLATE.replace("inner", "other"),
        },
        changes={"TemplateURL": "https://templates.example/two.yaml", "Parameters": {"value": "w"}},
    ),
)
