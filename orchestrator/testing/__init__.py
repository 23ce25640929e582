"""The contract of resource types, as tests: for our own types and, imported, for anybody's.

Subclass `contract.TypeContract`, say which type and how one is made (`samples.Sample`), and pytest does the
rest; `nested.NestedContract` is that of types whose thing is a stack. Nothing else of the orchestrator
imports this package. It needs the extra `testing`. Read `contract.py` first.
"""

import pytest

pytest.register_assert_rewrite("orchestrator.testing.contract", "orchestrator.testing.nested")
