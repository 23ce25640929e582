"""The short tags of CloudFormation's YAML."""

from __future__ import annotations

import pytest

from orchestrator.errors import InvalidTemplate
from orchestrator.template.definition import ResourceProxy, StackDefinition
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits, parse
from orchestrator.template.template import load

EQUAL = {"Fn::Equals": ["a", "b"]}
HEAD = 'AWSTemplateFormatVersion: "2010-09-09"\n'


def value(text: str) -> object:
    """Return the value of a key as it is stored."""
    return parse(f"{HEAD}Metadata:\n  x: {text}\n", Limits())["Metadata"]["x"]


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("!Ref Size", {"Ref": "Size"}),
        ("!Ref 5", {"Ref": "5"}),
        ("!GetAtt Web.Public.Ip", {"Fn::GetAtt": ["Web", "Public.Ip"]}),
        ("!GetAtt [Web, Ip]", {"Fn::GetAtt": ["Web", "Ip"]}),
        ("!Join ['-', [a, !Ref B]]", {"Fn::Join": ["-", ["a", {"Ref": "B"}]]}),
        ("!If [C, !Ref A, b]", {"Fn::If": ["C", {"Ref": "A"}, "b"]}),
        ("!Select [0, !GetAZs '']", {"Fn::Select": [0, {"Fn::GetAZs": ""}]}),
        ("!Split [',', 'a,b']", {"Fn::Split": [",", "a,b"]}),
        ("!Base64 text", {"Fn::Base64": "text"}),
        ("!FindInMap [M, !Ref A, k]", {"Fn::FindInMap": ["M", {"Ref": "A"}, "k"]}),
        (
            "!And [!Condition A, !Not [!Equals [a, b]]]",
            {"Fn::And": ["A", {"Fn::Not": [{"Fn::Equals": ["a", "b"]}]}]},
        ),
        ("!Sub plain", "plain"),
        (
            "!Sub '${A} ${W.Ip} ${!L}'",
            {
                "Fn::Replace": [
                    {"${A}": {"Ref": "A"}, "${W.Ip}": {"Fn::GetAtt": ["W", "Ip"]}, "${!L}": "${L}"},
                    "${A} ${W.Ip} ${!L}",
                ]
            },
        ),
        ("!Sub ['${v}!', {v: !Ref A}]", {"Fn::Replace": [{"${v}": {"Ref": "A"}}, "${v}!"]}),
    ],
)
def test_a_short_tag_stands_for_its_function(short: str, long: object) -> None:
    assert value(short) == long
    assert value(f"&a {short}") == long


def test_a_template_with_short_tags_is_evaluated() -> None:
    template = load(
        f"""{HEAD}
Parameters:
  Count: {{Type: Number, Default: 3}}
  On: {{Type: String, Default: "yes"}}
Conditions:
  Active: !Equals [!Ref On, "yes"]
  Both: !And [!Condition Active, !Not [!Equals [a, b]]]
Resources:
  Web:
    Type: T
    Condition: Both
    Properties: {{x: !Sub "${{Count}} of ${{AWS::StackName}}: ${{Db.Ip}} ${{!Db}}"}}
  Db: {{Type: T, Properties: {{x: !If [Both, !Join ["", [a, b]], c]}}}}
""",
        Limits(),
        ParameterValues({"Count": 3, "On": "yes", "AWS::StackName": "shop"}),
    )
    web, db = template.resources["Web"], template.resources["Db"]
    assert (set(web.requires), set(db.requires)) == ({"Db"}, set())
    view = StackDefinition(
        template.version,
        ParameterValues({"Count": 3, "AWS::StackName": "shop"}),
        {"Db": ResourceProxy("Db", "db-1", {"Ip": "10.0.0.1"}, "CREATE", "COMPLETE")},
    )
    assert view.resolve(web.body["properties"]) == {"x": "3 of shop: 10.0.0.1 ${Db}"}
    assert view.resolve(db.body["properties"]) == {"x": "ab"}


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("!Ref [a]", (3, 6), "must be a name"),
        ("!GetAtt Web", (3, 6), 'must be "RESOURCE.ATTRIBUTE" or a list'),
        ("!Sub [a]", (3, 6), "a text, or a list of a text and a map"),
        ("!Sub '${}'", (3, 6), "has no name"),
        ("!ImportValue a", (3, 6), "could not determine a constructor for the tag '!ImportValue'"),
    ],
)
def test_a_faulty_tag_is_reported_at_its_place(text: str, place: tuple[int, int], message: str) -> None:
    with pytest.raises(InvalidTemplate) as caught:
        value(text)
    [fault] = caught.value.diagnostics
    assert ((fault.line, fault.column), fault.code) == (place, "bad-tag")
    assert message in fault.message


def test_a_fault_inside_a_tag_has_a_place() -> None:
    text = f"""{HEAD}
Resources:
  Web:
    Type: T
    Properties:
      a: !Join
        - ""
        - - x
          - !Ref Nothing
      b: !GetAtt Nobody.Ip
"""
    with pytest.raises(InvalidTemplate) as caught:
        load(text, Limits())
    assert [(fault.line, fault.column) for fault in caught.value.diagnostics] == [(10, 13), (11, 10)]


@pytest.mark.parametrize("text", ["!Ref a", "!Ref [a]", "!Unknown a", "!GetAtt a.b"])
def test_a_tag_in_another_format_is_refused_as_before(text: str) -> None:
    with pytest.raises(InvalidTemplate) as caught:
        load(
            f"heat_template_version: 2018-08-31\nresources:\n  a: {{type: T, properties: {{x: {text}}}}}\n",
            Limits(),
        )
    [fault] = caught.value.diagnostics
    assert f"could not determine a constructor for the tag '{text.split(maxsplit=1)[0]}'" in fault.message
    assert (fault.line, fault.code) == (3, "bad-tag")
    assert ("CloudFormation" in fault.hint) == ("Unknown" not in text)


def test_nesting_is_limited_with_the_levels_that_tags_add() -> None:
    depth = 60
    text = "!Join ['', [" * depth + "a" + "]]" * depth
    assert value("!Join ['', [" * 20 + "a" + "]]" * 20)
    with pytest.raises(InvalidTemplate, match="nested deeper than"):
        value(text)
