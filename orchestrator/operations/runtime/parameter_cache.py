"""Parameter values of revisions, read once per process. Revisions never change, so no entry becomes stale."""

from __future__ import annotations

import threading
from collections import OrderedDict

from orchestrator.engine.check.visit import StackView
from orchestrator.json_types import JsonObject
from orchestrator.operations.runtime.sealed_parameters import hidden_parameters
from orchestrator.security.encryption import Cipher
from orchestrator.store.connections.database import Database
from orchestrator.store.stacks import revisions
from orchestrator.template.formats import Format
from orchestrator.template.parameters import ParameterValues

BYTES_PER_SLOT = 2_000  # characters and items that count as an additional revision
_SIZED = (str, list, dict)


class ParameterCache:
    """The parameter values of the revisions that this process used last."""

    def __init__(self, database: Database, cipher: Cipher, size: int = 4096) -> None:
        """Keep the values of `size` revisions with short values, of fewer revisions with long values."""
        self.database, self.cipher, self.size = database, cipher, size
        self._values: OrderedDict[int, ParameterValues] = OrderedDict()
        self._weights: dict[int, int] = {}
        self._weight = 0
        self._lock = threading.Lock()

    def get(self, stack: StackView) -> ParameterValues:
        """Return the parameter values of the stack's desired revision, with the pseudo parameters."""
        values = self._values.get(stack.revision_id)
        if values is not None:
            return values
        db = self.database.check_connection(durable=False)
        parameters, sealed = revisions.parameters(db, stack.revision_id)
        return self.put(stack, parameters, sealed)

    def put(self, stack: StackView, parameters: JsonObject, sealed: bytes | None) -> ParameterValues:
        """Add the stored values of the stack's desired revision, and return them."""
        pseudo = pseudo_parameters(stack.uuid, stack.name, stack.project_id)
        values = stored_values(parameters, sealed, self.cipher, pseudo)
        weight = (
            1
            + sum(len(value) for value in parameters.values() if isinstance(value, _SIZED)) // BYTES_PER_SLOT
        )
        with self._lock:
            if stack.revision_id not in self._values:
                self._values[stack.revision_id] = values
                self._weights[stack.revision_id] = weight
                self._weight += weight
            while self._weight > self.size:
                self._weight -= self._weights.pop(self._values.popitem(last=False)[0])
        return values


REGION = "ap-southeast-1"  # the region that templates in the CloudFormation format have always received


def pseudo_parameters(uuid: str, name: str, project_id: str, form: Format | None = None) -> dict[str, str]:
    """Return the values of a format's pseudo parameters, or of all formats if `form` is None
    (docs/internals/hot-language.md §4.4). The `uuid` of a stack that does not exist yet is the text None.
    """
    arn = uuid if uuid == "None" else f"arn:openstack:heat::{project_id}:stacks/{name}/{uuid}"
    values = {
        "OS::stack_id": uuid,
        "OS::stack_name": name,
        "OS::project_id": project_id,
        "AWS::StackId": arn,
        "AWS::StackName": name,
        "AWS::Region": REGION,
    }
    return values if form is None else {key: values[key] for key in form.pseudo if key in values}


def stored_values(
    parameters: JsonObject, sealed: bytes | None, cipher: Cipher, pseudo_values: dict[str, str]
) -> ParameterValues:
    """Return a revision's stored values as functions use them: converted, hidden values decrypted."""
    hidden = hidden_parameters(cipher, sealed)
    return ParameterValues({**parameters, **hidden, **pseudo_values}, hidden=frozenset(hidden))
