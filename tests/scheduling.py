"""The order of test modules in parallel runs, and the modules that share servers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from xdist.scheduler import LoadScopeScheduling

# Tests of a group run in the same process, one after the other, and share its servers or its installation.
GROUPS: Final = {
    "tests/clients/": "tests/clients",
    "tests/e2e/test_plugin_package.py": "tests/e2e/wheel",
    "tests/e2e/test_wheel.py": "tests/e2e/wheel",
    "tests/hostile/test_expensive_expressions.py": "tests/hostile/tenants",
    "tests/hostile/test_large_outputs.py": "tests/hostile/tenants",
    "tests/hostile/test_signal_floods.py": "tests/hostile/tenants",
    "tests/noisy/": "tests/noisy",
}
WAITING: Final = (  # modules that mostly wait for servers
    "tests/clients",
    "tests/e2e/",
    "tests/hostile/",
    "tests/integration/api/test_bad_input_http.py",
    "tests/integration/api/test_fuzz.py",
    "tests/integration/api/test_hooks_over_http.py",
    "tests/integration/api/test_large_bodies.py",
    "tests/integration/api/test_updates_over_http.py",
    "tests/integration/cli/",
    "tests/integration/deployment/",
    "tests/integration/workers/",
    "tests/noisy",
)
SPREAD: Final = 0.8  # part of the run in which the waiting modules begin; short modules end it


class ModuleScheduling(LoadScopeScheduling):
    """Modules or groups of modules, in the order of `ordered`."""

    def __init__(self, *args: Any) -> None:
        """Schedule nothing yet."""
        super().__init__(*args)
        self._ordered = False

    def _split_scope(self, nodeid: str) -> str:
        return scope(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        if not self._ordered:
            self._ordered = True
            queue = self.workqueue
            names = ordered({name: len(tests) for name, tests in queue.items()})
            self.workqueue = OrderedDict((name, queue[name]) for name in names)
        super()._assign_work_unit(node)


def scope(nodeid: str) -> str:
    """Return the module of a test, or its group."""
    module = nodeid.partition("::")[0]
    return next((group for prefix, group in GROUPS.items() if module.startswith(prefix)), module)


def ordered(sizes: Mapping[str, int]) -> list[str]:
    """Return the scopes in the order of their start, given their numbers of tests.

    Waiting scopes are spread evenly over the others, so that a part of the processes waits and a part
    computes at any time. Both kinds begin with the scope of most tests.
    """
    falling = sorted(sizes, key=lambda name: (-sizes[name], name))
    places: dict[str, float] = {}
    for waits in (True, False):
        names = [name for name in falling if name.startswith(WAITING) is waits]
        part = SPREAD if waits else 1.0
        places |= {name: part * number / len(names) for number, name in enumerate(names)}
    return sorted(falling, key=places.__getitem__)
