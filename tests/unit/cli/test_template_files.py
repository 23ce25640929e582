"""The files that are read from this machine and sent: templates as text, the files they name,
environments.
"""

from __future__ import annotations

import io
from pathlib import Path

import orjson
import pytest

from orchestrator.cli.exit_codes import ApiFailure, Failure
from orchestrator.cli.template_files.load import read_template, request_body, texts
from orchestrator.cli.template_files.references import named_in_environment, named_in_template

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


def write(folder: Path, **files: str) -> Path:
    """Write files, `__` in a name standing for a folder and `_` before the ending for the dot."""
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def names(text: str) -> list[tuple[str, bool]]:
    return [(place.name, place.template) for place in named_in_template(text)]


def test_files_are_found_where_functions_name_them_and_nowhere_else() -> None:
    assert names(YAML) == [
        ("nested/child.yaml", True), ("notes.txt", False), ("notes.txt", False), ("more.txt", False),
    ]  # fmt: skip
    assert set(names('{"a": [{"get_file": "x"}], "type": "n.yaml", "b": {"type": 3}}')) == {
        ("x", False),
        ("n.yaml", True),
    }


def test_a_name_given_by_an_alias_is_found_like_one_written_out() -> None:
    assert names("x: &f one.txt\na: {get_file: *f}\nb: {get_file: &g two.txt}\nc: {get_file: *g}\n") == [
        ("one.txt", False), ("two.txt", False), ("two.txt", False),
    ]  # fmt: skip


def test_a_type_is_a_template_by_the_endings_the_server_knows() -> None:
    assert names("a: {type: x.template}\nb: {type: x.json}\nc: {type: x.yml}\n") == [("x.template", True)]


def test_a_text_that_is_no_yaml_names_no_file_and_is_left_to_the_server() -> None:
    assert names("a: {get_file: x\n  b: ]") == []


def test_files_are_sent_under_the_names_the_template_uses_and_nested_ones_bring_theirs(
    tmp_path: Path,
) -> None:
    write(tmp_path, t_yaml=YAML, notes_txt="notes", more_txt="more", nested__inner_txt="inner")
    write(tmp_path, nested__child_yaml="a: {get_file: inner.txt}\nb: {type: deeper/d.yaml}\n")
    write(tmp_path, nested__deeper__d_yaml="c: {get_file: ../inner.txt}\n")
    source = read_template(tmp_path / "t.yaml")
    assert source.text == YAML
    assert source.files == {
        "nested/child.yaml": "a: {get_file: inner.txt}\nb: {type: deeper/d.yaml}\n",
        "deeper/d.yaml": "c: {get_file: ../inner.txt}\n",
        "inner.txt": "inner",
        "../inner.txt": "inner",
        "notes.txt": "notes",
        "more.txt": "more",
    }


def test_one_name_for_two_files_is_changed_in_the_nested_template_and_nothing_else_in_it(
    tmp_path: Path,
) -> None:
    write(tmp_path, t_yaml="a: {get_file: x.txt}\nb: {type: n/child.yaml}\n", x_txt="outer", n__x_txt="inner")
    write(tmp_path, n__child_yaml="# kept\na: {get_file: &x x.txt}  # and this\nb:\n  get_file: *x\n")
    source = read_template(tmp_path / "t.yaml")
    assert source.text == "a: {get_file: x.txt}\nb: {type: n/child.yaml}\n"
    assert source.files == {
        "x.txt": "outer",
        "n/x.txt": "inner",
        "n/child.yaml": '# kept\na: {get_file: &x "n/x.txt"}  # and this\nb:\n  get_file: "n/x.txt"\n',
    }


def test_a_nested_json_template_is_changed_as_well(tmp_path: Path) -> None:
    write(tmp_path, t_yaml="a: {get_file: x}\nb: {type: n/c.template}\n", x="outer", n__x="inner")
    write(tmp_path, n__c_template='{"a": [{"get_file": "x"}]}')
    files = read_template(tmp_path / "t.yaml").files
    assert orjson.loads(files["n/c.template"]) == {"a": [{"get_file": "n/x"}]}
    assert files["n/x"] == "inner"


def test_when_the_path_is_taken_too_the_url_of_the_file_is_its_name(tmp_path: Path) -> None:
    write(tmp_path, t_yaml="a: {type: m/m.yaml}\nb: {get_file: x}\nc: {type: n/n.yaml}\n", x="0", m__n__x="1")
    write(tmp_path, m__m_yaml="a: {get_file: n/x}", n__n_yaml="a: {get_file: x}", n__x="2")
    files = read_template(tmp_path / "t.yaml").files
    url = (tmp_path / "n" / "x").as_uri()
    assert (files["x"], files["n/x"], files[url]) == ("0", "1", "2")
    assert files["n/n.yaml"] == f'a: {{get_file: "{url}"}}'


def test_a_file_url_is_read_and_sent_under_itself_and_any_other_left_to_the_server(tmp_path: Path) -> None:
    url = (tmp_path / "x.txt").as_uri()
    write(tmp_path, x_txt="x", t_yaml=f"a: {{get_file: '{url}'}}\nb: {{type: 'https://there/t.yaml'}}\n")
    assert read_template(tmp_path / "t.yaml").files == {url: "x"}


def test_a_template_that_is_only_quoted_brings_the_files_it_names(tmp_path: Path) -> None:
    write(tmp_path, t_yaml="a: {get_file: n/q.yaml}\nb: {get_file: n/data.yaml}\n", n__z_txt="z")
    write(tmp_path, n__q_yaml="heat_template_version: 2018-08-31\nx: {get_file: z.txt}\n")
    write(tmp_path, n__data_yaml="x: {get_file: not there}\n")
    assert set(read_template(tmp_path / "t.yaml").files) == {"n/q.yaml", "n/data.yaml", "z.txt"}


def test_templates_that_nest_each_other_are_read_once(tmp_path: Path) -> None:
    write(tmp_path, a_yaml="a: {type: b.yaml}", b_yaml="a: {type: a.yaml}")
    assert set(read_template(tmp_path / "a.yaml").files) == {"a.yaml", "b.yaml"}


def test_a_missing_file_is_reported_at_its_reference(tmp_path: Path) -> None:
    write(tmp_path, t_yaml="a: {get_file: gone.txt}")
    with pytest.raises(Failure, match=r"t\.yaml:1:15: cannot read the file .*gone\.txt: No such file"):
        read_template(tmp_path / "t.yaml")
    write(tmp_path, t_yaml='a: {get_file: "a\\0b"}')
    with pytest.raises(Failure, match=r"t\.yaml:1:15: cannot read the file"):
        read_template(tmp_path / "t.yaml")


def test_all_missing_files_are_reported_with_their_places(tmp_path: Path) -> None:
    write(
        tmp_path,
        t_yaml="a: {get_file: gone.txt}\nr:\n  type: inner.yaml\n",
        inner_yaml="heat_template_version: 2018-08-31\nb: {get_file: lost.txt}\n",
    )
    with pytest.raises(Failure, match="2 files cannot be read") as failure:
        read_template(tmp_path / "t.yaml")
    first, second = failure.value.details
    assert "t.yaml:1:15: cannot read the file" in first
    assert "inner.yaml:2:15: cannot read the file" in second


def test_all_missing_environments_are_reported_with_the_missing_templates_of_others(tmp_path: Path) -> None:
    write(
        tmp_path, t_yaml="heat_template_version: 2018-08-31\n", e_yaml="resource_registry:\n  My::T: m.yaml\n"
    )
    source = read_template(tmp_path / "t.yaml")
    paths = [tmp_path / name for name in ("gone.yaml", "e.yaml", "lost.yaml")]
    with pytest.raises(Failure, match="3 files cannot be read") as failure:
        request_body(source, paths, {})
    gone, template, lost = failure.value.details
    assert "cannot read the environment" in gone
    assert "gone.yaml" in gone
    assert "e.yaml:2:10: cannot read the file" in template
    assert "m.yaml" in template
    assert "lost.yaml" in lost


def test_one_environment_is_sent_as_written_with_the_templates_it_names(tmp_path: Path) -> None:
    environment = """\
parameters: {a: x.yaml}  # as it is
resource_registry:
  My::Type: ../lib/mine.yaml
  OS::Heat::None: OS::Heat::Value
  Their::Type: https://there/t.yaml
  resources:
    one: {My::Other: other.yaml, hooks: pre-create}
"""
    write(tmp_path, t_yaml="a: 1", env__e_yaml=environment, lib__mine_yaml="a: {get_file: in.txt}")
    write(tmp_path, lib__in_txt="in", env__other_yaml="b: 1")
    body = request_body(read_template(tmp_path / "t.yaml"), [tmp_path / "env" / "e.yaml"], {"p": "1"})
    assert body == {
        "template": "a: 1",
        "environment": environment,
        "parameters": {"p": "1"},
        "files": {"../lib/mine.yaml": "a: {get_file: in.txt}", "in.txt": "in", "other.yaml": "b: 1"},
    }


def test_an_environment_that_means_another_file_by_a_name_of_the_templates_says_so(tmp_path: Path) -> None:
    write(tmp_path, t_yaml="a: {type: x.yaml}", x_yaml="a: 1", env__x_yaml="b: 1")
    write(tmp_path, env__e_yaml="resource_registry:\n  My::Type: x.yaml\n")
    body = request_body(read_template(tmp_path / "t.yaml"), [tmp_path / "env" / "e.yaml"], {})
    assert body["environment"] == 'resource_registry:\n  My::Type: "env/x.yaml"\n'
    assert body["files"] == {"x.yaml": "a: 1", "env/x.yaml": "b: 1"}


def test_a_base_url_says_what_an_environments_templates_are_relative_to(tmp_path: Path) -> None:
    write(tmp_path, t_yaml="a: 1", lib__x_yaml="x: 1", own__y_yaml="y: 1")
    environment = "resource_registry:\n  base_url: lib\n  A::X: x.yaml\n  resources:\n    r:\n"
    environment += (
        "      base_url: own/\n      A::Y: y.yaml\n    s: {base_url: 'http://there/a', A::Z: z.yaml}\n"
    )
    write(tmp_path, e_yaml=environment)
    body = request_body(read_template(tmp_path / "t.yaml"), [tmp_path / "e.yaml"], {})
    assert body["files"] == {"x.yaml": "x: 1", "y.yaml": "y: 1"}
    assert body["environment"] == environment.replace("z.yaml", '"http://there/a/z.yaml"')


def test_what_is_no_template_in_a_registry_names_no_file() -> None:
    text = "resource_registry: {A: B, 'C*': 'D*', E: null, hooks: x.yaml, F: [x.yaml]}\n"
    assert named_in_environment(text + "parameters: {p: x.yaml}\n") == []
    assert named_in_environment("{'resource_registry': [") == []


def test_several_environments_are_files_for_the_server_to_merge_under_the_parameters(tmp_path: Path) -> None:
    write(tmp_path, t_yaml="a: {type: x.yaml}", x_yaml="x: 0", one__e_yaml="parameters: {a: 1}\n")
    write(tmp_path, two__e_yaml="resource_registry: {A::X: x.yaml}\n", two__x_yaml="x: 2")
    item, two = tmp_path / "one" / "e.yaml", tmp_path / "two" / "e.yaml"
    body = request_body(read_template(tmp_path / "t.yaml"), [item, two], {"p": "1"})
    assert body == {
        "template": "a: {type: x.yaml}",
        "environment_files": [str(item), str(two)],
        "parameters_win": True,
        "parameters": {"p": "1"},
        "files": {
            "x.yaml": "x: 0",
            "two/x.yaml": "x: 2",
            str(item): "parameters: {a: 1}\n",
            str(two): 'resource_registry: {A::X: "two/x.yaml"}\n',
        },
    }


def test_a_fault_is_shown_in_the_text_it_is_about(tmp_path: Path) -> None:
    write(tmp_path, t_yaml="a: {type: x.yaml}", x_yaml="outer\ninner\n", e_yaml="zzz: {}\n")
    body = request_body(read_template(tmp_path / "t.yaml"), [tmp_path / "e.yaml"], {})
    faults = [
        {"code": "c", "message": "one", "line": 1, "column": 1, "file": "environment"},
        {"code": "c", "message": "two", "line": 2, "column": 1, "file": "x.yaml"},
        {"code": "c", "message": "three", "line": 1, "column": 1, "file": ""},
    ]
    refusal = ApiFailure(400, {"error": {"message": "one", "errors": faults}}, None)
    failure = refusal.explained(tmp_path / "t.yaml", body["template"], texts([tmp_path / "e.yaml"], body))
    assert list(failure.details) == [
        f"{tmp_path}/e.yaml:1:1: error: one [c]", " 1 | zzz: {}", "   | ^",
        "x.yaml:2:1: error: two [c]", " 2 | inner", "   | ^",
        f"{tmp_path}/t.yaml:1:1: error: three [c]", " 1 | a: {type: x.yaml}", "   | ^",
    ]  # fmt: skip


@pytest.mark.parametrize("reference", ["../secret.txt", "{outside}", "link.txt", "child.yaml"])
def test_a_template_from_standard_input_sends_no_file_outside_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: str
) -> None:
    outside, inside = tmp_path / "secret.txt", tmp_path / "here"
    write(
        inside, notes_txt="n", child_yaml=YAML.replace("notes.txt", "../secret.txt").replace("nested/", "x")
    )
    outside.write_text("secret")
    (inside / "link.txt").symlink_to(outside)
    monkeypatch.chdir(inside)
    named = reference.format(outside=outside)
    key = "type" if named.endswith(".yaml") else "get_file"
    resources = f"{{a: {{{key}: {named}, b: {{get_file: notes.txt}}}}}}"
    text = f"heat_template_version: 2018-08-31\nresources: {resources}\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    with pytest.raises(Failure) as failure:
        read_template(Path("-"))
    everything = failure.value.message + "".join(failure.value.details)
    assert "a template from standard input cannot reference" in everything
    (inside / "t.yaml").write_text(text)
    if key == "get_file":
        assert set(read_template(Path("t.yaml")).files) == {named, "notes.txt"}
