"""Live attributes, read from the provider for a response: as its caller, in parallel, under one deadline.

A failure is no error of the request: the attributes are null, with a message. No transaction is open.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Final

import orjson

from orchestrator.engine.check.outcome import error_text
from orchestrator.engine.physical_names import physical_name
from orchestrator.json_types import JsonMapping
from orchestrator.operations.context import OperationContext
from orchestrator.operations.keystone.delegated_credentials import cloud_of_reader
from orchestrator.operations.resource_context.operation import has_secret, with_provider_access
from orchestrator.operations.resource_context.state import recorded_secrets
from orchestrator.operations.runtime import turns
from orchestrator.operations.software.type_store import DeploymentStore
from orchestrator.resources.base import Context, ResourceType
from orchestrator.resources.verbs.contexts import read_context
from orchestrator.security.policy import allowed, policy_of
from orchestrator.store.stacks import live_inputs
from orchestrator.store.stacks.live_inputs import LiveInputs
from orchestrator.store.stacks.resources import ResourceRow
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.template.functions import ALL

AT_ONCE: Final = 16  # parallel calls
LIVE_SECONDS: Final = 10.0  # for all calls of a request
MAX_RESOURCES: Final = 1_000  # read for a response; the attributes of further resources are null
MAX_BYTES: Final = 1024 * 1024  # JSON of the live attributes of a resource
MAX_REASON_CHARACTERS: Final = 300
NO_ANSWER: Final = "there was no answer in time"
TOO_MANY: Final = f"a response reads those of at most {MAX_RESOURCES} resources"
UPDATE: Final = "stacks:update"  # the permission for attributes that give access to an object
TOO_LARGE: Final = f"they have more than {MAX_BYTES // 1024} KiB"


@dataclass(frozen=True, slots=True)
class LiveValues:
    """Live attributes of a resource; those that could not be read are null, and `error` is the message."""

    values: JsonMapping = field(default_factory=dict)
    error: str = ""
    secret: bool = False  # a declared secret is among them
    failed: frozenset[str] = frozenset()  # the attributes that the message is about


NO_LIVE_VALUES: Final = LiveValues()


class LiveReader:
    """Reads live attributes of a stack's resources within the deadline of one request."""

    def __init__(self, context: OperationContext, stack: StackRow, seconds: float = LIVE_SECONDS) -> None:
        """`seconds`: for all reads of the request."""
        self._context, self._stack = context, stack
        self._ends_at = time.monotonic() + seconds
        self._may_update = allowed(policy_of(context.settings), UPDATE, context.caller)
        # A session for all resources: opened at the first call.
        self._cloud = cloud_of_reader(context.settings, context.caller)

    def read(self, used: Mapping[str, Collection[str]]) -> Mapping[str, LiveValues]:
        """Return the live ones among the used attributes by resource. ALL stands for all but `show`."""
        context, stack_id = self._context, self._stack.id
        with context.database.borrow() as db:
            types = {
                name: context.types.get(type_)
                for name, type_ in live_inputs.types(db, stack_id, used).items()
            }
            wanted = {
                name: names
                for name, type_ in types.items()
                if type_ is not None and (names := self._chosen(used[name], type_))
            }
            found = live_inputs.resources(db, stack_id, wanted) if wanted else ()
        return self._read([(inputs, wanted[inputs.name]) for inputs in found if inputs.name in wanted])

    def _read(self, requests: Sequence[tuple[LiveInputs, frozenset[str]]]) -> Mapping[str, LiveValues]:
        results = {
            inputs.name: _failed(inputs.name, names, TOO_MANY) for inputs, names in requests[MAX_RESOURCES:]
        }
        pool = ThreadPoolExecutor(AT_ONCE, "live")
        try:
            futures = {
                pool.submit(self._call, inputs, names): (inputs.name, names)
                for inputs, names in requests[:MAX_RESOURCES]
            }
            turns.await_answers(futures, self._remaining())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        for future, (name, names) in futures.items():
            results[name] = _result(future, name, names)
        return results

    def _call(self, inputs: LiveInputs, names: frozenset[str]) -> LiveValues:
        resource_type = self._context.types[inputs.type_name]
        refused = names & self.refused(resource_type)
        if refused:
            others = self._call(inputs, names - refused) if names != refused else LiveValues()
            reason = f"{', '.join(sorted(refused))} needs the permission {UPDATE}"
            failed = _failed(inputs.name, refused, reason)
            return replace(failed, values={**others.values, **failed.values}, secret=others.secret)
        read = resource_type.read_attributes(
            self._verb_context(resource_type, inputs), inputs.physical_id, names
        )
        values = {name: read.get(name) for name in names}
        if len(orjson.dumps(values)) > MAX_BYTES:
            return _failed(inputs.name, names, TOO_LARGE)
        return LiveValues(values, secret=bool(inputs.sealed) or has_secret(resource_type, names))

    def refused(self, resource_type: ResourceType) -> frozenset[str]:
        """Return the live attributes of a type that the caller may not read."""
        if self._may_update:
            return frozenset()
        declared = resource_type.attributes
        return frozenset(
            name for name in resource_type.live_attributes & declared.keys() if declared[name].gives_access
        )

    def _chosen(self, used: Collection[str], resource_type: ResourceType) -> frozenset[str]:
        live = resource_type.live_attributes
        every = live - {"show"} - self.refused(resource_type) if ALL in used else frozenset()
        return live & frozenset(used) | every

    def _verb_context(self, resource_type: ResourceType, inputs: LiveInputs) -> Context:
        context, stack = self._context, self._stack
        opened: JsonMapping = context.cipher.open(inputs.sealed.encode()) if inputs.sealed else {}
        ctx = read_context(
            name=inputs.name,
            physical_name=physical_name(
                stack.name, inputs.name, str(inputs.uuid), resource_type.physical_name_limit
            ),
            token=f"{inputs.uuid}-live",
            properties=opened.get("properties", inputs.properties) or {},
            data=opened.get("data", inputs.data) or {},
            metadata=opened.get("metadata", inputs.metadata) or {},
            deadline_seconds=self._remaining(),
            software=DeploymentStore.at(context, stack, inputs.name),
        )
        if not resource_type.calls_out:
            return ctx
        return with_provider_access(ctx, context.settings, stack.project_id, self._cloud)

    def _remaining(self) -> float:
        return max(0.1, self._ends_at - time.monotonic())


def read_for_resource(
    context: OperationContext, stack: StackRow, row: ResourceRow, with_attr: Sequence[str]
) -> LiveValues:
    """Return the live attributes of a resource as it is shown: `show` and those requested, or all of a type
    without a live `show`. Secret values are masked in any case, and are not read.
    """
    resource_type = context.types.get(row.effective_type)
    if resource_type is None or not resource_type.live_attributes or row.physical_id is None:
        return NO_LIVE_VALUES
    if row.sealed is not None and recorded_secrets(context.cipher.open(row.sealed)) is None:
        return NO_LIVE_VALUES
    live = resource_type.live_attributes
    reader = LiveReader(context, stack)
    names = {"show", *with_attr} & live
    if not resource_type.live_show:
        names |= live - reader.refused(resource_type)
    names = {name for name in names if not has_secret(resource_type, [name])}
    return reader.read({row.name: names}).get(row.name, NO_LIVE_VALUES)


def _result(future: Future[LiveValues], name: str, names: frozenset[str]) -> LiveValues:
    if future.cancelled() or not future.done():
        return _failed(name, names, NO_ANSWER)
    error = future.exception()
    if error is None:
        return future.result()
    return _failed(name, names, error_text(error) if isinstance(error, Exception) else str(error))


def _failed(name: str, names: frozenset[str], reason: str) -> LiveValues:
    message = f"The attributes of {name} cannot be read: {reason[:MAX_REASON_CHARACTERS]}"
    return LiveValues(dict.fromkeys(names), message, failed=names)
