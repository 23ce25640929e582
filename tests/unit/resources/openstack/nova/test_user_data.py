"""The user data of OS::Nova::Server."""

from __future__ import annotations

import base64
import email
import json

import pytest

from orchestrator.resources.openstack.nova.server.server_type import Server
from orchestrator.resources.openstack.nova.server.user_data import user_data as encoded_user_data

SERVER = Server()


def given(**values):
    values = {"flavor": "f1", "image": "i1", "user_data_format": "RAW", **values}
    properties, faults = SERVER.read_properties(values)
    assert faults == []
    return properties


def created(cloud, context_of, **values):
    """Create a server; return the body of the request."""
    cloud.answers("POST", "/servers", {"server": {"id": "s1"}}, status=202)
    ctx = context_of(given(**values))
    result = SERVER.create(ctx, ctx.properties)
    assert result.physical_id == "s1"
    return cloud.sent("POST", "/servers")[-1].body


NESTED_MESSAGE = """\
Content-Type: multipart/mixed; boundary="outer"
MIME-Version: 1.0

--outer
Content-Type: text/x-shellscript
Content-Disposition: attachment; filename="one.sh"

#!/bin/sh
true
--outer
Content-Type: multipart/mixed; boundary="inner"

--inner
Content-Type: text/cloud-config

#cloud-config
--inner--
--outer--
"""


def user_data(cloud, context_of, **values):
    encoded = created(cloud, context_of, **values)["server"].get("user_data", "")
    return base64.b64decode(encoded).decode()


def parts(text):
    walked = (part for part in email.message_from_string(text).walk() if not part.is_multipart())
    return {part.get_filename(): part.get_payload(decode=True).decode() for part in walked}


def test_raw_user_data_is_unchanged(cloud, context_of):
    assert user_data(cloud, context_of, user_data="#!/bin/sh\nécho") == "#!/bin/sh\nécho"


def test_user_data_for_the_cfn_tools_are_files(cloud, context_of):
    cloud.answers("POST", "/servers", {"server": {"id": "s1"}}, status=202)
    values = given(user_data="#!/bin/sh\ntrue", user_data_format="HEAT_CFNTOOLS")
    ctx = context_of(values, metadata={"k": "v"})
    SERVER.create(ctx, ctx.properties)
    text = base64.b64decode(cloud.sent("POST")[0].body["server"]["user_data"]).decode()
    files = parts(text)
    assert files["cfn-userdata"] == "#!/bin/sh\ntrue"
    assert json.loads(files["cfn-init-data"]) == {"k": "v"}
    assert "def handle_part" in files["part-handler.py"]
    compile(files["loguserdata.py"], "loguserdata.py", "exec")
    compile(files["part-handler.py"], "part-handler.py", "exec")


@pytest.mark.parametrize(
    ("data_format", "content"),
    [
        ("HEAT_CFNTOOLS", ""),
        ("HEAT_CFNTOOLS", "#!/bin/sh\necho \u00e9\nFrom here\n"),
        ("SOFTWARE_CONFIG", "#!/bin/sh\ntrue"),
        ("SOFTWARE_CONFIG", NESTED_MESSAGE),
    ],
)
def test_user_data_is_written_as_by_the_library_email(context_of, data_format, content):
    ctx = context_of(given(user_data=content, user_data_format=data_format))
    text = base64.b64decode(encoded_user_data(ctx, ctx.properties, {"k": "v"})).decode()
    assert email.message_from_string(text).as_string() == text


def test_equal_attempts_send_equal_user_data(cloud, context_of):
    values = {"user_data": "x", "user_data_format": "HEAT_CFNTOOLS"}
    assert user_data(cloud, context_of, **values) == user_data(cloud, context_of, **values)
