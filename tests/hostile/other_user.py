"""Code that runs as a different local user, in a process forked from the test."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import Any

import pytest

NOBODY = 65534

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run code as a different user")


def as_nobody(attack: Callable[[], Any]) -> Any:
    """Return the result of `attack`, run as the user `nobody`.

    The process is forked, because the interpreter and the packages may be in directories of root.
    """
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            result: Any = attack()
        except BaseException as error:
            result = error
        with os.fdopen(write_end, "wb") as pipe:
            pickle.dump(result, pipe)
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        result = pickle.load(pipe)
    os.waitpid(pid, 0)
    if isinstance(result, BaseException):
        raise result
    return result
