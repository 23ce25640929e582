"""The contract of resource types as importable tests, for built-in types and plugins.

Subclass `contract.TypeContract`, provide a sample of the type (`samples.Sample`), and run pytest;
`nested.NestedContract` is the contract of nested types. The rest of the orchestrator does not import this
package. It requires the extra `testing`. Read `contract.py` first.
"""

import pytest

pytest.register_assert_rewrite(
    "orchestrator.testing.contract",
    "orchestrator.testing.fault_contract",
    "orchestrator.testing.release_contract",
    "orchestrator.testing.nested",
)
