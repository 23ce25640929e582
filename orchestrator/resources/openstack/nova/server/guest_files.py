"""Files that cloud-init runs in a guest whose user data is in the formats HEAT_CFNTOOLS and SOFTWARE_CONFIG.

The paths are those that the cfn tools and os-collect-config in guest images read.
"""

from __future__ import annotations

from typing import Final

DATA_FOLDER: Final = "/var/lib/heat-cfntools"

CLOUD_CONFIG: Final = """\
#cloud-config
merge_how: dict(recurse_array,no_replace)+list(append)
cloud_init_modules:
 - bootcmd
 - migrator
 - seed_random
 - growpart
 - resizefs
 - set_hostname
 - update_hostname
 - update_etc_hosts
 - users-groups
 - ssh
output: {all: '| tee -a /var/log/cloud-init-output.log'}
"""

# Runs at every boot, before the other parts.
BOOT_HOOK: Final = f"""\
#!/bin/sh
mkdir -p {DATA_FOLDER} /var/lib/cloud/data
chmod 700 {DATA_FOLDER}
if [ -n "$INSTANCE_ID" ]; then
    marker="/var/lib/cloud/data/boothooks-$INSTANCE_ID"
    [ -e "$marker" ] && exit 0
    : > "$marker"
fi
exit 0
"""

# cloud-init loads this module and calls it with each part of the type x-cfninitdata.
PART_HANDLER: Final = f'''\
#part-handler
"""Store the parts for the cfn tools in files."""

import os

FOLDERS = ("{DATA_FOLDER}", "/var/lib/cloud/data")


def list_types():
    return ["text/x-cfninitdata"]


def handle_part(data, ctype, filename, payload):
    if ctype in ("__begin__", "__end__"):
        return
    content = payload if isinstance(payload, bytes) else payload.encode("utf-8")
    name = os.path.basename(filename)
    for folder in FOLDERS:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = os.path.join(folder, name)
        with os.fdopen(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as target:
            target.write(content)
'''

# Runs the user's data, which has been stored as cfn-userdata.
USER_DATA_RUNNER: Final = f'''\
#!/usr/bin/env python3
"""Run the user data of this server once, with a log."""

import datetime
import os
import subprocess
import sys

USER_DATA = "{DATA_FOLDER}/cfn-userdata"
LOG = "/var/log/heat-provision.log"
DONE = "{DATA_FOLDER}/provision-finished"


def run(log, *command):
    log.write("$ %s\\n" % " ".join(command))
    log.flush()
    try:
        return subprocess.call(command, stdout=log, stderr=subprocess.STDOUT)
    except OSError as error:
        log.write("%s\\n" % error)
        return error.errno or 1


def main():
    if os.path.exists(DONE):
        return 0
    with open(LOG, "a") as log:
        os.chmod(LOG, 0o600)
        log.write("Provision began: %s\\n" % datetime.datetime.now())
        run(log, "cfn-create-aws-symlinks")
        code = 0
        if os.path.exists(USER_DATA) and os.path.getsize(USER_DATA):
            os.chmod(USER_DATA, 0o700)
            code = run(log, USER_DATA)
            if code:
                log.write("Provision failed with status %d\\n" % code)
        log.write("Provision done: %s\\n" % datetime.datetime.now())
    if not code:
        open(DONE, "w").close()
    return code


if __name__ == "__main__":
    sys.exit(main())
'''
