"""The parts of openstacksdk, an extra, that this package uses.

They are imported at first use, by one thread at a time: the modules of openstacksdk import each other, and a
second thread would see a part of them.
"""

from __future__ import annotations

import threading
from typing import Any, Final

from orchestrator.errors import Misconfigured

MODULES: Final = ("openstack.connection",)  # to import in advance
MISSING_EXTRA: Final = "openstacksdk is not installed: pip install 'stack-orchestrator[openstack]'"
_lock = threading.Lock()


def sdk_connection() -> Any:
    """Return the class of openstacksdk's connections.

    Raises:
        Misconfigured: openstacksdk is not installed.
    """
    with _lock:
        try:
            from openstack.connection import Connection  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise Misconfigured(f"{MISSING_EXTRA} ({error})") from error
    return Connection


def sdk_exception() -> type[Exception]:
    """Return the base class of openstacksdk's exceptions.

    Raises:
        Misconfigured: openstacksdk is not installed.
    """
    sdk_connection()
    from openstack.exceptions import SDKException  # noqa: PLC0415 - an extra

    return SDKException
