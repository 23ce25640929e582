"""A revision's parameter values, read once a process: revisions never change, so nothing here goes stale."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from sqlalchemy import select

from orchestrator.engine.visit import StackView
from orchestrator.security.encryption import Cipher
from orchestrator.store.database import Database
from orchestrator.store.models import Revision
from orchestrator.template.formats import Format
from orchestrator.template.parameters import ParameterValues


class ParameterCache:
    """The parameter values of the revisions this process met last."""

    def __init__(self, database: Database, cipher: Cipher, size: int = 256) -> None:
        """Keep the values of `size` revisions."""
        self.database, self.cipher, self.size = database, cipher, size
        self._values: OrderedDict[int, ParameterValues] = OrderedDict()

    def get(self, stack: StackView) -> ParameterValues:
        """Return the values the stack's desired revision was given, with the pseudo parameters."""
        values = self._values.get(stack.revision_id)
        if values is None:
            values = self._values[stack.revision_id] = self._read(stack)
            if len(self._values) > self.size:
                self._values.popitem(last=False)
        return values

    def _read(self, stack: StackView) -> ParameterValues:
        with self.database.engine.connect() as connection:
            row = connection.execute(
                select(Revision.parameters, Revision.sealed).where(Revision.id == stack.revision_id)
            ).one()
        return stored_values(
            row.parameters, row.sealed, self.cipher, pseudo(stack.uuid, stack.name, stack.project_id)
        )


REGION = "ap-southeast-1"  # what templates in the CloudFormation dialect have always been told


def pseudo(uuid: str, name: str, project_id: str, form: Format | None = None) -> dict[str, str]:
    """Return the values of the pseudo parameters that a format has, without one those of all
    (spec/hot-language.md §4.4). Before there is a stack its `uuid` is the text None.
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
    parameters: dict[str, Any], sealed: bytes | None, cipher: Cipher, pseudo_values: dict[str, str]
) -> ParameterValues:
    """Return a revision's stored values as functions see them: converted already, the hidden ones opened."""
    hidden = cipher.open(sealed) if sealed else {}
    return ParameterValues({**parameters, **hidden, **pseudo_values}, hidden=frozenset(hidden))
