"""Inputs and outputs of software configs: stored form, resolved values, reported values."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.resources.builtin import software_io as io


class TestReading:
    def test_omitted_properties_are_stored_only_for_the_type(self):
        assert io.read_inputs([{"name": "a", "description": None, "replace_on_change": False}]) == (
            [{"name": "a", "type": "String"}],
            [],
        )
        assert io.read_outputs([{"name": "a", "description": None}]) == (
            [{"name": "a", "type": "String", "error_output": False}],
            [],
        )

    @pytest.mark.parametrize(
        ("kind", "given", "kept"),
        [
            ("String", 5, "5"),
            ("Number", "5", 5),
            ("Number", "", ""),  # as older clients send it
            ("CommaDelimitedList", "a,b", ["a", "b"]),
            ("Json", {"a": 1}, {"a": 1}),
            ("Json", '{"a": 1}', {"a": 1}),
            ("Boolean", "true", True),
        ],
    )
    def test_a_default_is_of_the_inputs_type(self, kind: str, given: Any, kept: Any):
        read, faults = io.read_inputs([{"name": "a", "type": kind, "default": given}])
        assert faults == []
        assert read[0]["default"] == kept

    def test_a_default_without_a_type_is_kept_as_it_is(self):
        assert io.read_inputs([{"name": "a", "default": [1]}])[0][0]["default"] == [1]

    def test_a_value_is_kept_as_it_is(self):
        assert io.read_inputs([{"name": "a", "type": "Number", "value": "x"}]) == (
            [{"name": "a", "type": "Number", "value": "x"}],
            [],
        )

    def test_all_faults_are_reported_with_their_places(self):
        _, faults = io.read_inputs(
            [{"name": "a"}, {"type": "Text", "zz": 1}, {"name": "b", "default": "x", "type": "Number"}]
        )
        assert sorted((fault.where, fault.code) for fault in faults) == [
            ("inputs[1]", "missing-property"),
            ("inputs[1].type", "wrong-value"),
            ("inputs[1].zz", "unknown-property"),
            ("inputs[2].default", "wrong-value"),
        ]


class TestDeriving:
    def test_each_input_gets_its_value(self):
        declared = [{"name": "a", "type": "Number", "default": 1}, {"name": "b", "type": "String"}]
        derived = io.derive_inputs(declared, {"b": "x", "c": [2]}, [("deploy_action", "CREATE", "Which")])
        assert derived == [
            {"name": "a", "type": "Number", "default": 1, "value": 1},
            {"name": "b", "type": "String", "value": "x"},
            {"name": "c", "type": "String", "value": [2]},
            {"name": "deploy_action", "type": "String", "description": "Which", "value": "CREATE"},
        ]

    def test_a_given_null_is_a_value(self):
        [item] = io.derive_inputs([{"name": "a", "default": 1}], {"a": None}, [])
        assert item["value"] is None

    @pytest.mark.parametrize(
        ("before", "after", "another"),
        [
            ({"a": 1}, {"a": 1}, False),
            ({"a": 1}, {"a": 2}, True),
            ({}, {"a": 2}, False),  # it is new: nothing of it was deployed
            ({"b": 1, "a": 1}, {"b": 2, "a": 1}, False),
        ],
    )
    def test_only_inputs_that_say_so_replace(self, before: Any, after: Any, another: bool):
        old = [{"name": name, "value": value} for name, value in before.items()]
        new = [{"name": n, "value": v, "replace_on_change": n == "a"} for n, v in after.items()]
        assert io.asks_for_another(old, new) is another


class TestSubstituting:
    @pytest.mark.parametrize(
        ("config", "made"),
        [
            ({"get_input": "a"}, 1),
            ([{"x": {"get_input": "a"}}, "get_input"], [{"x": 1}, "get_input"]),
            ({"get_input": "none"}, None),
            ({"get_input": ["a"]}, {"get_input": ["a"]}),
            ({"get_input": "a", "b": 2}, {"get_input": "a", "b": 2}),
            ("text", "text"),
            (None, None),
        ],
    )
    def test_inputs_go_where_the_config_asks_for_them(self, config: Any, made: Any):
        assert io.substitute(config, {"a": 1}, "get_input", strict=False) == made

    def test_another_key_may_stand_for_inputs(self):
        config = {"x": {"take": "a"}, "y": {"get_input": "a"}}
        assert io.substitute(config, {"a": 1}, "take", strict=False) == {"x": 1, "y": {"get_input": "a"}}

    def test_missing_values_are_reported_if_required(self):
        with pytest.raises(io.MissingInput, match="b"):
            io.substitute([{"get_input": "b"}], {"a": 1}, "get_input", strict=True)


class TestJudging:
    OUTPUTS = ({"name": "result"}, {"name": "complaint", "error_output": True})

    def judged(self, details: dict[str, Any], recorded: dict[str, Any] | None = None) -> io.AgentReport:
        return io.judge(self.OUTPUTS, details, recorded or {})

    def test_nothing_said_is_a_success(self):
        reported = self.judged({})
        assert (reported.failed, reported.reason, reported.summary) == (
            False,
            "Outputs received",
            "succeeded",
        )
        assert reported.outputs == dict.fromkeys(io.ALWAYS)

    @pytest.mark.parametrize("code", [0, "0", None, ""])
    def test_a_status_of_nought_is_a_success(self, code: Any):
        assert not self.judged({"deploy_status_code": code}).failed

    @pytest.mark.parametrize("code", [1, "127", -9])
    def test_any_other_status_is_a_failure(self, code: Any):
        reported = self.judged({"deploy_status_code": code})
        assert reported.failed
        assert reported.reason == f"deploy_status_code : Deployment exited with non-zero status code: {code}"
        assert reported.summary == f"failed ({code})"

    def test_an_error_output_is_a_failure_and_all_failures_are_reported(self):
        reported = self.judged({"deploy_status_code": 3, "complaint": "no disk"})
        assert reported.reason == (
            "deploy_status_code : Deployment exited with non-zero status code: 3, complaint : no disk"
        )

    def test_only_declared_outputs_are_stored_and_earlier_outputs_stay(self):
        reported = self.judged(
            {"result": 2, "else": 3, "deploy_stdout": "x"}, {"complaint": "old", "result": 1}
        )
        assert reported.outputs == {
            "result": 2,
            "complaint": "old",
            "deploy_stdout": "x",
            "deploy_stderr": None,
            "deploy_status_code": None,
        }
        assert not reported.failed
