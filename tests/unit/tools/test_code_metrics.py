"""The limits on size."""

from __future__ import annotations

import ast
from pathlib import Path

from tools.code_metrics import (
    MAX_FUNCTION_LINES,
    MAX_METHODS,
    MAX_MODULE_LINES,
    ROOT,
    Module,
    counters,
    exceeded,
    long_modules,
    violations,
)


def faults_of(source: str) -> list[str]:
    module = Module(ROOT / "api" / "sample.py", source, ast.parse(source))
    return [fault.partition(": ")[2].partition(";")[0] for fault in violations([module])]


def test_a_module_at_every_limit_has_no_violation() -> None:
    body = "\n".join("    pass" for _ in range(MAX_FUNCTION_LINES - 1))
    methods = "\n".join(f"    def m{number}(self): ..." for number in range(MAX_METHODS))
    source = f"def f():\n{body}\n\nclass C:\n{methods}\n"
    padding = "\n" * (MAX_MODULE_LINES - source.count("\n"))
    assert faults_of(source + padding) == []


def test_each_limit_has_its_violation() -> None:
    body = "\n".join("    pass" for _ in range(MAX_FUNCTION_LINES))
    methods = "\n".join(f"    def m{number}(self): ..." for number in range(MAX_METHODS + 1))
    source = f"def f():\n{body}\n\nclass C:\n{methods}\n"
    padding = "\n" * (MAX_MODULE_LINES + 1 - source.count("\n"))
    assert faults_of(source + padding) == [
        f"{MAX_MODULE_LINES + 1} lines",
        f"C has {MAX_METHODS + 1} methods",
        f"f has {MAX_FUNCTION_LINES + 1} lines",
    ]


def test_a_folder_holds_a_bounded_number_of_modules() -> None:
    product = [Module(ROOT / "api" / f"m{number}.py", "", ast.parse("")) for number in range(17)]
    assert list(violations(product)) == ["api: 17 modules; the maximum is 16"]


def test_each_mechanism_with_a_ceiling_is_counted() -> None:
    source = """
class Settings:
    one: int
    two: str = ""
class Stop(BaseException): ...
_mine, _yours = threading.local(), ContextVar("yours")
ctx, commands = base.Context(""), Entry("")
"""
    module = Module(ROOT / "api" / "sample.py", source, ast.parse(source))
    assert counters([module]) == {
        "context variables and thread-locals": 2,
        "subclasses of BaseException": 1,
        "constructions of the context of a verb": 1,
        "settings": 2,
        "commands": 1,
        "modules under 40 lines": 1,
        "resource types of OpenStack with many methods": 0,
        "lines": 7,
    }
    own, others = counters([module]), counters([])
    assert list(exceeded(own, others)) == []
    assert list(exceeded(others, own)) == []
    many = Module(module.path, source, ast.parse("\n".join(f"local({n})" for n in range(100))))
    for pair in ((counters([many]), others), (others, counters([many]))):
        assert [fault.partition(";")[0] for fault in exceeded(*pair)] == [
            "100 context variables and thread-locals"
        ]


def test_lines_of_other_distributions_do_not_count() -> None:
    large = counters([Module(ROOT / "api" / "sample.py", "\n" * 1_000_000, ast.parse(""))])
    assert len(list(exceeded(large, counters([])))) == 1
    assert list(exceeded(counters([]), large)) == []


def test_tests_have_the_limit_of_lines_only() -> None:
    source = "def test():\n" + "    pass\n" * MAX_MODULE_LINES
    module = Module(ROOT / "tests" / "sample.py", source, ast.parse(source))
    assert list(long_modules([module])) == [
        f"tests/sample.py: {MAX_MODULE_LINES + 1} lines; the maximum is {MAX_MODULE_LINES}"
    ]


def test_the_tools_run_from_the_root_of_the_repository() -> None:
    assert (ROOT / "pyproject.toml").exists()
    assert Path(__file__).is_relative_to(ROOT)
