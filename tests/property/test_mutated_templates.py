"""Every mutated template is accepted, or its faults are reported: within a time limit, and in terms of the
template.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.config import Settings
from orchestrator.errors import InvalidTemplate, LimitExceeded
from orchestrator.operations.context import OperationContext
from orchestrator.operations.request_body import StackRequest
from orchestrator.operations.validation.request import validate_request
from orchestrator.resources.registry import load_registry
from orchestrator.security.caller import ADMIN_ROLES, Caller
from orchestrator.template.parse import Limits
from orchestrator.template.template import FaultyTemplate, load
from qa.bench.processes import forget_peak, peak_memory
from tests.profiles import examples
from tests.property.mutations import SOURCES, files_beside, mutated_documents, mutated_texts

UUID: Final = "5f5a8a0e-3c3a-4b9e-9d6c-1b9b7c2f6a10"
LIMIT_CPU_SECONDS: Final = 2.0  # for a template
LIMIT_MB: Final = 300.0  # that all of them together may need
LONGEST: Final = 20_000  # characters of a message
INTERNAL: Final = re.compile(
    r"\b(Key|Type|Value|Index|Attribute|Recursion|Lookup|Assertion|Unicode\w+|Overflow|Memory|Name|JSON\w+)Error\b"
    r"|NoneType|object has no attribute|Traceback|not subscriptable|unhashable|unsupported operand"
    r"|not supported between|is not iterable|<(class|function|object|bound) |positional argument"
    r"|object is not callable|dict_keys|orchestrator\.\w+\.|0x[0-9a-f]{8,}"
)
# Heat says these word for word, so they stay.
HEATS_OWN: Final = re.compile(
    r"Found a \[?NoneType\]? instead|(?<=list string: )'\w+' object has no attribute 'split'"
    r"|is type <class '\w+'> instead of a dict|unhashable type: '\w+'"
)
CONTEXT: Final = OperationContext(
    database=cast(Any, None),  # nothing is stored
    cipher=cast(Any, None),
    caller=Caller("p", roles=ADMIN_ROLES),  # some types are for admins
    settings=Settings(),
    types=load_registry(),
)


@pytest.fixture(scope="module", autouse=True)
def bounded_memory() -> Iterator[None]:
    """See to it that no template of them all takes much memory."""
    forget_peak(os.getpid())
    before = peak_memory(os.getpid())
    yield
    after = peak_memory(os.getpid())
    assert before is None or after is None or after - before < LIMIT_MB


def judge(source: Mapping[str, Any] | str, path: Path, **how: bool) -> InvalidTemplate | LimitExceeded | None:
    """Return the reason of a refusal, if any; check its time, and that it names no code of ours."""
    files = files_beside(path)
    request = StackRequest(source, "mutant", files, parameters=_values(source))
    began_at = time.process_time()
    try:
        validate_request(CONTEXT, request, stack_uuid=UUID, **how)
    except (InvalidTemplate, LimitExceeded) as error:
        _check_words(error)
        return error
    finally:
        assert time.process_time() - began_at < LIMIT_CPU_SECONDS
    return None


def _values(source: Mapping[str, Any] | str) -> dict[str, Any]:
    """Return values for the parameters without a default, so that validation covers more of the template."""
    try:
        schemas = load(source, Limits()).parameters
    except FaultyTemplate as error:
        schemas = error.rest.parameters
    except (InvalidTemplate, LimitExceeded):
        return {}
    return {name: "1" for name, schema in schemas.items() if schema.default is None}


def _check_words(error: InvalidTemplate | LimitExceeded) -> None:
    assert 0 < len(str(error)) < LONGEST
    if isinstance(error, LimitExceeded):
        return
    for fault in error.diagnostics:
        assert fault.message
        assert fault.code
        said = HEATS_OWN.sub("", f"{fault.message} {fault.hint}")
        assert not INTERNAL.search(said), fault
        orjson.dumps([fault.message, fault.path, fault.hint, fault.excerpt])  # it goes out as JSON


ways = st.sampled_from([{"strict": True}, {"strict": False}, {"strict": False, "overlook": True}])
patient = settings(deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_a_template_as_it_is_is_judged_in_time(path: Path) -> None:
    judge(path.read_text(), path, strict=False, overlook=True)


@settings(patient, max_examples=examples(300))
@given(mutated_texts(), ways)
def test_a_mutated_text_is_accepted_or_its_faults_are_reported(
    mutant: tuple[Path, bytes], how: dict[str, bool]
) -> None:
    path, data = mutant
    judge(data.decode(errors="replace"), path, **how)


@settings(patient, max_examples=examples(600))
@given(mutated_documents(), ways, st.booleans())
def test_a_mutated_document_is_accepted_or_its_faults_are_reported(
    mutant: tuple[Path, dict[str, Any]], how: dict[str, bool], as_text: bool
) -> None:
    path, document = mutant
    judge(orjson.dumps(document).decode() if as_text else document, path, **how)
