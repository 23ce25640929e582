"""What is read from this machine and sent: templates as text, the files they name, environments."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cli.failure import Failure
from orchestrator.cli.sources import merge_environments, named_files, read_template

YAML = """\
heat_template_version: 2018-08-31
resources:
  a:
    type: nested/child.yaml
    properties: {text: {get_file: notes.txt}, list: [{get_file: notes.txt}, get_file]}
  b:
    type: OS::Heat::Value
    properties: {value: &again {get_file: more.txt}, other: *again, type: plain}
"""


def test_files_are_found_where_functions_name_them_and_nowhere_else() -> None:
    assert list(named_files(YAML)) == [
        ("nested/child.yaml", True), ("notes.txt", False), ("notes.txt", False), ("more.txt", False),
    ]  # fmt: skip
    assert set(named_files('{"a": [{"get_file": "x"}], "type": "n.yaml", "b": {"type": 3}}')) == {
        ("x", False),
        ("n.yaml", True),
    }


def test_a_text_that_is_no_yaml_names_no_file_and_is_left_to_the_server() -> None:
    assert list(named_files("a: {get_file: x\n  b: ]")) == []


def test_files_are_sent_under_the_names_the_template_uses_and_nested_ones_bring_theirs(
    tmp_path: Path,
) -> None:
    (tmp_path / "nested").mkdir()
    (tmp_path / "t.yaml").write_text(YAML)
    (tmp_path / "notes.txt").write_text("notes")
    (tmp_path / "more.txt").write_text("more")
    (tmp_path / "nested/child.yaml").write_text("a: {get_file: inner.txt}")
    (tmp_path / "nested/inner.txt").write_text("inner")
    source = read_template(tmp_path / "t.yaml")
    assert source.text == YAML
    assert source.files == {
        "nested/child.yaml": "a: {get_file: inner.txt}",
        "inner.txt": "inner",
        "notes.txt": "notes",
        "more.txt": "more",
    }


def test_templates_that_nest_each_other_are_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("type: b.yaml")
    (tmp_path / "b.yaml").write_text("type: a.yaml")
    assert set(read_template(tmp_path / "a.yaml").files) == {"a.yaml", "b.yaml"}


def test_a_file_that_is_missing_is_named_with_who_wants_it(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("a: {get_file: gone.txt}")
    with pytest.raises(Failure, match=r"cannot read the file named by .*t\.yaml .*gone\.txt: No such file"):
        read_template(tmp_path / "t.yaml")


def test_one_environment_is_sent_as_written(tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text("parameters: {a: 1}  # as it is\n")
    assert merge_environments([tmp_path / "e.yaml"]) == "parameters: {a: 1}  # as it is\n"


def test_a_later_environment_wins_name_by_name(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("parameters: {a: 1, b: 1}\nparameter_defaults: {c: 1}\n")
    (tmp_path / "two.yaml").write_text("b: 2\n")  # a bare mapping holds parameters
    assert merge_environments([tmp_path / "one.yaml", tmp_path / "two.yaml"]) == {
        "parameters": {"a": 1, "b": 2},
        "parameter_defaults": {"c": 1},
    }
