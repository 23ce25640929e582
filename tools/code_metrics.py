"""Print size and documentation metrics of the product, and check the limits on size.

    python tools/code_metrics.py           # the table; exits with 1 when a limit is exceeded
    python tools/code_metrics.py --limits  # the violations only

Limits: 500 lines per module, 25 methods per class, 50 lines per function, 16 modules per folder.
A folder with a module per public item (`MODULE_PER_ITEM`) may hold more. Tests only have the limit of lines.
`CEILINGS` bounds the number of some mechanisms in the product and the other distributions of the repository
(`packages/`), and the lines of the product. A change that needs a higher ceiling names the reason in its
commit message; a change that removes one lowers the ceiling.
"""

from __future__ import annotations

import argparse
import ast
import gc
import io
import statistics
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGES: Final = ("orchestrator", "api", "tasks")
OWN: Final = sorted(str(path.parent.relative_to(ROOT)) for path in ROOT.glob("packages/*/pyproject.toml"))
DISTRIBUTIONS: Final = [f"{path}/src" for path in OWN]
TESTS: Final = ("tests", "qa", "tools", *(f"{path}/tests" for path in OWN))
MAX_MODULE_LINES: Final = 500
MAX_METHODS: Final = 25
MAX_FUNCTION_LINES: Final = 50
MAX_MODULES: Final = 16
SMALL_MODULE_LINES: Final = 60
FLOOR_LINES: Final = 40
# A resource type, a command, a collection of the API or a part of the template language each.
MODULE_PER_ITEM: Final = frozenset(
    {
        "orchestrator/resources/builtin",
        "orchestrator/cli/commands",
        "orchestrator/template",
        "orchestrator/template/functions",
        "api/v1",
    }
)
LINES: Final = "lines"
CEILINGS: Final = MappingProxyType(
    {
        "context variables and thread-locals": 10,
        "subclasses of BaseException": 2,
        "constructions of the context of a verb": 3,
        "settings": 60,
        "commands": 59,
        "resource types of OpenStack with many methods": 30,
        "modules under 40 lines": 50,
        LINES: 119_200,
    }
)
TYPE_PACKAGE: Final = "orchestrator.resources.openstack."
FEW_METHOD_LINES: Final = 10  # of an ordinary type, which is a declaration (docs/collection-types.md)
CONTEXT_VARIABLES: Final = frozenset({"ContextVar", "local"})
VERB_CONTEXT: Final = "Context"
FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Module:
    """A parsed module of the product."""

    path: Path
    source: str
    tree: ast.Module

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def lines(self) -> int:
        return self.source.count("\n")

    @property
    def functions(self) -> list[Function]:
        return [node for node in ast.walk(self.tree) if isinstance(node, FUNCTIONS)]

    @property
    def classes(self) -> list[ast.ClassDef]:
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)]


def modules(packages: Sequence[str] = PACKAGES, *, parsed: bool = True) -> list[Module]:
    """The modules of these packages, in path order; their trees are empty if not `parsed`."""
    paths = sorted(path for package in packages for path in (ROOT / package).rglob("*.py"))
    found = []
    for path in paths:
        source = path.read_text()
        found.append(Module(path, source, ast.parse(source if parsed else "")))
    return found


def function_lines(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def methods(definition: ast.ClassDef) -> int:
    return sum(isinstance(node, FUNCTIONS) for node in definition.body)


def long_modules(found: list[Module]) -> Iterator[str]:
    """Each module with too many lines."""
    for module in found:
        if module.lines > MAX_MODULE_LINES:
            yield f"{module.name}: {module.lines} lines; the maximum is {MAX_MODULE_LINES}"


def violations(product: list[Module]) -> Iterator[str]:
    """Each violation of a limit, with its place and size."""
    yield from long_modules(product)
    for module in product:
        for definition in module.classes:
            if methods(definition) > MAX_METHODS:
                owner, size = f"{module.name}:{definition.lineno}: {definition.name}", methods(definition)
                yield f"{owner} has {size} methods; the maximum is {MAX_METHODS}"
        for function in module.functions:
            if function_lines(function) > MAX_FUNCTION_LINES:
                place, size = f"{module.name}:{function.lineno}", function_lines(function)
                yield f"{place}: {function.name} has {size} lines; the maximum is {MAX_FUNCTION_LINES}"
    folders = Counter(module.path.parent for module in product if module.path.name != "__init__.py")
    for folder, number in sorted(folders.items()):
        name = str(folder.relative_to(ROOT))
        if number > MAX_MODULES and name not in MODULE_PER_ITEM:
            yield f"{name}: {number} modules; the maximum is {MAX_MODULES}"


def is_tiny(module: Module) -> bool:
    """Whether a module should be part of a neighbour: it has few lines, and is neither the file of a package,
    an item of its folder, nor the declaration of a single class.
    """
    definitions = [node for node in module.tree.body if isinstance(node, (ast.ClassDef, *FUNCTIONS))]
    is_declaration = len(definitions) == 1 and isinstance(definitions[0], ast.ClassDef)
    folder = str(module.path.parent.relative_to(ROOT))
    is_named = module.path.name in {"__init__.py", "__main__.py"} or folder in MODULE_PER_ITEM
    return module.lines < FLOOR_LINES and not (is_named or is_declaration)


def counters(product: list[Module]) -> dict[str, int]:
    """The number of each mechanism in `CEILINGS`."""
    nodes = [node for module in product for node in ast.walk(module.tree)]
    calls = Counter(_name(node.func) for node in nodes if isinstance(node, ast.Call))
    bases = Counter(_name(base) for node in nodes if isinstance(node, ast.ClassDef) for base in node.bases)
    return {
        "context variables and thread-locals": sum(
            counted[name] for name in CONTEXT_VARIABLES for counted in (calls, bases)
        ),
        "subclasses of BaseException": bases["BaseException"],
        "constructions of the context of a verb": calls[VERB_CONTEXT],
        "settings": sum(
            isinstance(item, ast.AnnAssign)
            for node in nodes
            if isinstance(node, ast.ClassDef) and node.name == "Settings"
            for item in node.body
        ),
        "commands": calls["Entry"],
        "resource types of OpenStack with many methods": sum(
            lines > FEW_METHOD_LINES for lines in method_lines_of_types(product).values()
        ),
        "modules under 40 lines": sum(map(is_tiny, product)),
        LINES: sum(module.lines for module in product),
    }


def method_lines_of_types(product: list[Module]) -> dict[str, int]:
    """The lines of methods in the class of each resource type of OpenStack, without its bases'."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    points = project["entry-points"]["orchestrator.resource_types"]
    names = {target: name for name, target in reversed(points.items()) if target.startswith(TYPE_PACKAGE)}
    found = {}
    for module in product:
        path = module.name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for definition in module.classes:
            if name := names.get(f"{path}:{definition.name}"):
                own = [node for node in definition.body if isinstance(node, FUNCTIONS)]
                found[name] = sum(map(function_lines, own))
    return dict(sorted(found.items()))


def _name(called: ast.expr) -> str:
    """The last part of a name."""
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def exceeded(product: Mapping[str, int], distributions: Mapping[str, int]) -> Iterator[str]:
    """Each ceiling that is exceeded, given the counters; the lines are the product's."""
    for mechanism, ceiling in CEILINGS.items():
        number = product[mechanism] + (0 if mechanism == LINES else distributions[mechanism])
        if number > ceiling:
            yield f"{number} {mechanism}; the ceiling is {ceiling} (tools/code_metrics.py)"


def docstring_lines(module: Module) -> int:
    owners = [module.tree, *module.classes, *module.functions]
    return sum(
        (ast.get_docstring(owner, clean=False) or "\n").count("\n") + 1 for owner in owners if _has(owner)
    )


def _has(owner: ast.Module | ast.ClassDef | Function) -> bool:
    return ast.get_docstring(owner, clean=False) is not None


def comment_tokens(module: Module) -> int:
    tokens = tokenize.generate_tokens(io.StringIO(module.source).readline)
    return sum(token.type == tokenize.COMMENT for token in tokens)


def table(product: list[Module]) -> Iterator[tuple[str, str]]:
    """The rows of the table: a metric and its value."""
    lines = sorted(module.lines for module in product)
    total = sum(lines)
    functions = [function for module in product for function in module.functions]
    sizes = sorted(function_lines(function) for function in functions)
    classes = [definition for module in product for definition in module.classes]
    documented = [owner for owner in functions if not owner.name.startswith("_")]
    asserts = sum(isinstance(node, ast.Assert) for module in product for node in ast.walk(module.tree))
    names = (node for module in product for node in ast.walk(module.tree) if isinstance(node, ast.Name))
    yield "modules", str(len(product))
    for mechanism, number in counters(product).items():
        yield mechanism, str(number)
    yield "median module", str(int(statistics.median(lines)))
    yield "9 in 10 modules under", str(lines[int(0.9 * len(lines))])
    yield "largest module", str(lines[-1])
    small = [module.lines < SMALL_MODULE_LINES for module in product if module.path.name != "__init__.py"]
    yield (
        f"modules under {SMALL_MODULE_LINES} lines, without __init__",
        f"{sum(small)} of {len(small)}, {sum(small) / len(small):.1%}",
    )
    yield "comments per 100 lines", f"{100 * sum(map(comment_tokens, product)) / total:.1f}"
    yield "docstring lines per 100 lines", f"{100 * sum(map(docstring_lines, product)) / total:.1f}"
    yield "functions", str(len(functions))
    yield (
        "median, 90th, 99th percentile function",
        ", ".join(str(sizes[int(share * len(sizes))]) for share in (0.5, 0.9, 0.99)),
    )
    yield "longest function", str(sizes[-1])
    yield "return-annotated", f"{sum(f.returns is not None for f in functions) / len(functions):.1%}"
    yield "public functions with a docstring", f"{sum(map(_has, documented)) / len(documented):.1%}"
    yield "most methods in a class", str(max(map(methods, classes)))
    yield "asserts", str(asserts)
    yield "uses of Any", str(sum(name.id == "Any" for name in names))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--limits", action="store_true", help="print the violations only")
    options = parser.parse_args()
    gc.disable()  # the trees stay
    product, distributions = modules(), modules(DISTRIBUTIONS)
    if not options.limits:
        for metric, value in table(product):
            sys.stdout.write(f"{value:>20}  {metric}\n")
    found = [
        *violations([*product, *distributions]),
        *exceeded(counters(product), counters(distributions)),
        *long_modules(modules(TESTS, parsed=False)),
    ]
    for violation in found:
        sys.stdout.write(f"{violation}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
