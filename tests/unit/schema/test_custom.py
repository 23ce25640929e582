"""The custom constraints: local, with a cloud, and from third-party packages."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys

import pytest

from orchestrator.schema.constraint_checks import parse_time
from orchestrator.schema.custom import CLOUD, custom_check, known_constraints

NAME_60 = "a" * 60

FINE = [
    ("ip_addr", "192.168.0.1"),
    ("ip_addr", "2001:db8::1"),
    ("ip_addr", "::ffff:1.2.3.4"),
    ("ip_addr", ["10.0.0.1", "::1"]),
    ("net_cidr", "10.0.0.0/8"),
    ("net_cidr", "10.1.2.3/8"),
    ("net_cidr", "::/0"),
    ("net_cidr", "2001:db8::1/64"),
    ("ip_or_cidr", "10.0.0.1"),
    ("ip_or_cidr", "10.0.0.0/24"),
    *[("mac_addr", text) for text in ("fa:16:3e:00:11:22", "FA-16-3E-00-11-22", "0:1:2:3:4:5")],
    *[("mac_addr", text) for text in ("fa16.3e00.1122", "fa16:3e00:112", "fa163e-001122", "fa163e001122")],
    *[("dns_name", text) for text in ("www.example.org", "www.example.org.", "host", "x.1", "1.", "", None)],
    *[("rel_dns_name", text) for text in ("host.1", "a", "", None, ".".join([NAME_60] * 4) + "a" * 3)],
    *[("dns_domain", text) for text in ("example.org.", "org.", "", None)],
    *[
        ("iso_8601", text)
        for text in (
            "2026-01-02T03:04:05Z",
            "2026-01-02 03:04:05.5+0200",
            "2026-01-02T03:04:05,5-02",
            "20260102T0304",
            "2026-01-02T03",
            "2026-1-2",
            "2026-01",
            "2026",
            "2024-02-29",
        )
    ],
    *[("expiration", text) for text in ("2999-01-01T00:00:00", "2999", " 2999-01-01 ", "", None)],
    *[("json_string", text) for text in ('{"a": [1]}', "5", "", None)],
    *[("timezone", text) for text in ("Europe/Berlin", "UTC", "Etc/GMT+1", "", None)],
    *[("cron_expression", text) for text in ("*/5 0-6,20 1 jan mon-fri", "@daily", "", None)],
    ("test_constr", 3),
]
IP, SUBNET = "Invalid IP address", "is not a valid IP subnet"
BAD_NAME = "must be 1-63 characters long, each of which can only be alphanumeric or a hyphen."
WRONG = [
    *[("ip_addr", value, IP) for value in ("192.168.0.256", "", "01.1.1.1", "1.1.1.1\n", "fe80::1%eth0", 5)],
    ("net_cidr", "10.0.0.0", f"'10.0.0.0' {SUBNET}"),
    ("net_cidr", "10/8", f"'10/8' {SUBNET}"),
    ("net_cidr", "10.0.0.0/255.0.0.0", f"'10.0.0.0/255.0.0.0' {SUBNET}"),
    ("net_cidr", "10.0.0.0/08", f"'10.0.0.0/08' {SUBNET}"),
    ("net_cidr", "10.0.0.0/33", "Invalid net cidr invalid IPNetwork 10.0.0.0/33 "),
    ("net_cidr", "a/8", "Invalid net cidr invalid IPNetwork a.0.0.0/8 "),
    ("net_cidr", "", "Invalid net cidr invalid IPNetwork  "),
    ("ip_or_cidr", "10.0.0.0/x", f"'10.0.0.0/x' {SUBNET}"),
    ("ip_or_cidr", "x", "'x' is not a valid IP address"),
    ("ip_or_cidr", 5, "5 is not a valid IP or CIDR"),
    *[
        ("mac_addr", value, "Invalid MAC address.")
        for value in ("fa:16:3e:00:11", "fa:16-3e:00:11:22", "g0:00:00:00:00:00", "", None)
    ],
    (
        "dns_name",
        "-a.org",
        "'-a.org' not in valid format. Reason: Name '-a' must not start or end with a hyphen.",
    ),
    ("dns_name", "a..org", "'a..org' not in valid format. Reason: Encountered an empty component."),
    ("dns_name", "A.org", f"'A.org' not in valid format. Reason: Name 'A' {BAD_NAME}"),
    ("dns_name", "a_b", f"'a_b' not in valid format. Reason: Name 'a_b' {BAD_NAME}"),
    ("dns_name", "a" * 64, f"'{'a' * 64}' not in valid format. Reason: Name '{'a' * 64}' {BAD_NAME}"),
    ("dns_name", "x.1.", "'x.1.' not in valid format. Reason: TLD '1' must not be all numeric."),
    (
        "dns_name",
        "x" * 256,
        f"'{'x' * 256}' not in valid format. Reason: '{'x' * 256}' exceeds the 255 character FQDN limit",
    ),
    ("rel_dns_name", "a.b.", "'a.b.' is a FQDN. It should be a relative domain name."),
    (
        "rel_dns_name",
        "x" * 253,
        f"'{'x' * 253}' contains '253' characters. Adding a domain name will cause it to exceed the maximum "
        "length of a FQDN of '255'.",
    ),
    ("dns_domain", "example.org", "'example.org' must end with '.'."),
    ("dns_domain", ".", "'.' not in valid format. Reason: Encountered an empty component."),
    *[
        ("iso_8601", value, "")
        for value in (
            "tomorrow",
            "",
            5,
            None,
            "202601",
            "2026-W01",
            "2026-01-02T24:00",
            "2026-01-02Z",
            "2026T03",
            "2026-02-29",
            "2026-01-02T03:04:05+24:00",
        )
    ],
    (
        "expiration",
        "1999-01-01T00:00:00Z",
        "Expiration 1999-01-01T00:00:00Z is invalid: Expiration time is out of date.",
    ),
    ("expiration", "never", "Expiration never is invalid: Unable to parse date string 'never'"),
    ("expiration", "2999-13-01", "Expiration 2999-13-01 is invalid: month must be in 1..12"),
    (
        "json_string",
        "{",
        "JSON string { is invalid: "
        "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
    ),
    (
        "json_string",
        5,
        "JSON string 5 is invalid: the JSON object must be str, bytes or bytearray, not int",
    ),
    ("json_string", "[" * 100_000, f"JSON string {'[' * 100_000} is invalid: it is nested too deep"),
    ("timezone", "utc", "Invalid timezone: 'No time zone found with key utc'"),
    ("timezone", "Europe", "Invalid timezone: 'No time zone found with key Europe'"),
    (
        "timezone",
        "/etc/localtime",
        "Invalid timezone: ZoneInfo keys may not be absolute paths, got: /etc/localtime",
    ),
    (
        "cron_expression",
        "60 * * * *",
        "Invalid CRON expression: [60 * * * *] is not acceptable, out of range",
    ),
]


@pytest.mark.parametrize(("name", "value"), FINE)
def test_configs_for_the_action_pass(name, value):
    assert custom_check(name, value) is None


@pytest.mark.parametrize(("name", "value", "reason"), WRONG)
def test_configs_for_other_actions_are_reported_with_heats_message(name, value, reason):
    assert custom_check(name, value) == f"Error validating value '{value}'" + (
        f": {reason}" if reason else ""
    )


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-01-02T03:04:05+02:30", "2026-01-02T00:34:05"),
        ("2026-01-02T03:04:05-0230", "2026-01-02T05:34:05"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05"),
        ("2026-01-02T03:04:05", "2026-01-02T03:04:05"),
        ("20260102 0304", "2026-01-02T03:04:00"),
        ("2026-2-3", "2026-02-03T00:00:00"),
        ("2026-2", "2026-02-01T00:00:00"),
        ("2026", "2026-01-01T00:00:00"),
    ],
)
def test_a_time_is_read_in_its_own_zone(text, utc):
    assert parse_time(text).astimezone(dt.UTC).isoformat() == f"{utc}+00:00"


def test_the_names_are_heats():
    assert len(CLOUD) == 57
    assert known_constraints() >= CLOUD | {name for name, _ in FINE}
    assert {"nova.flavor", "neutron.lbaas.pool", "octavia.availabilityzoneprofile"} <= CLOUD
    assert CLOUD.isdisjoint({"ip_addr", "timezone"})


@pytest.mark.parametrize("name", sorted(CLOUD))
def test_checks_without_a_service_accept_the_value(name):
    assert custom_check(name, "whatever") is None


def test_an_unknown_name_is_refused():
    assert custom_check("nova.flavr", "m1") == '"m1" does not validate nova.flavr (constraint not found)'


PLUGIN = """
def even(value):
    return None if value % 2 == 0 else f"{value} is odd"

def flavor(value):
    return "" if value == "none" else None

number = 5
"""
POINTS = """[orchestrator.constraints]
acme.even = acme_checks:even
nova.flavor = acme_checks:flavor
acme.gone = acme_checks:gone
acme.number = acme_checks:number
"""
ASK = """
import json
from orchestrator.errors import Misconfigured
from orchestrator.schema.custom import custom_check

def said(name, value):
    try:
        return custom_check(name, value)
    except Misconfigured as error:
        return f"Misconfigured: {error}"

print(json.dumps([
    said("acme.even", 2), said("acme.even", [2, 3]),
    said("nova.flavor", "small"), said("nova.flavor", "none"),
    said("acme.gone", 1), said("acme.number", 1), said("acme.even", "x"), said("ip_addr", "::1"),
]))
"""


def test_an_installed_package_adds_constraints_and_a_broken_package_is_an_operator_error(tmp_path):
    (tmp_path / "acme_checks.py").write_text(PLUGIN)
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    completed = subprocess.run(
        [sys.executable, "-c", ASK],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    said = json.loads(completed.stdout)
    assert said[:4] == [
        None,
        "Error validating value '[2, 3]': 3 is odd",
        None,
        "Error validating value 'none'",
    ]
    assert said[4].startswith("Misconfigured: constraint acme.gone cannot be loaded from acme_checks:gone: ")
    assert said[5] == "Misconfigured: constraint acme.number: acme_checks:number cannot be called"
    assert said[6].startswith("Misconfigured: constraint acme.even failed: TypeError: ")
    assert said[7] is None
