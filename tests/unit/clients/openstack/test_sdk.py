"""The import of openstacksdk."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import threading
from orchestrator.clients.openstack.sdk import sdk_connection, sdk_exception
failed = []
start = threading.Barrier(8)
def load(part):
    start.wait()
    try:
        part()
    except BaseException as error:
        failed.append(repr(error))
threads = [threading.Thread(target=load, args=(part,)) for part in (sdk_connection, sdk_exception) * 4]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(failed)
"""


def test_threads_that_use_openstacksdk_first_do_not_see_parts_of_it() -> None:
    shown = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    assert shown.stdout == "[]\n"
