"""The CloudFormation formats (docs/internals/hot-language.md §15)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from orchestrator.json_types import JsonObject
from orchestrator.template import versions
from orchestrator.template.cfn_parameters import read_parameter
from orchestrator.template.formats import Format, Keywords
from orchestrator.template.functions import declared

KEYWORDS: Final = Keywords(
    description="Description",
    parameter_groups="",
    parameters="Parameters",
    conditions="",
    mappings="Mappings",
    resources="Resources",
    outputs="Outputs",
    value="Value",
    type="Type",
    properties="Properties",
    metadata="Metadata",
    depends_on="DependsOn",
    deletion_policy="DeletionPolicy",
    update_policy="UpdatePolicy",
    condition="",
    external_id="",
)

FUNCTIONS: Final = {name: declared(name, versions.FIRST) for name in versions.CFN_FUNCTIONS}
COMMON: Final[JsonObject] = {
    "rules": versions.FIRST,
    "read_parameter": read_parameter,
    "pseudo": ("AWS::StackId", "AWS::StackName", "AWS::Region"),
    "reserved": (),
    "ignores_unknown_keys": True,
}

FORMATS: Final = (
    Format("HeatTemplateFormatVersion", "2012-12-12", FUNCTIONS, keywords=KEYWORDS, **COMMON),
    Format(
        "AWSTemplateFormatVersion",
        "2010-09-09",
        {**FUNCTIONS, "Fn::If": declared("Fn::If", versions.FIRST)},
        {name: declared(name, versions.FIRST) for name in versions.CFN_CONDITIONS},
        keywords=replace(KEYWORDS, conditions="Conditions", condition="Condition"),
        **COMMON,
    ),
)
