"""The custom constraints that need no cloud."""

from __future__ import annotations

import pytest

from orchestrator.schema.custom import custom_check

FINE = [
    ("ip_addr", "192.168.0.1"),
    ("ip_addr", "2001:db8::1"),
    ("net_cidr", "10.0.0.0/8"),
    ("net_cidr", "10.1.2.3/8"),
    ("net_cidr", "2001:db8::/32"),
    ("ip_or_cidr", "10.0.0.1"),
    ("ip_or_cidr", "10.0.0.0/24"),
    ("mac_addr", "fa:16:3e:00:11:22"),
    ("mac_addr", "FA-16-3E-00-11-22"),
    ("dns_name", "www.example.org"),
    ("dns_name", "www.example.org."),
    ("dns_name", "host"),
    ("rel_dns_name", "host.1"),
    ("dns_domain", "example.org."),
    ("dns_domain", ""),
    ("iso_8601", "2026-01-02T03:04:05Z"),
    ("iso_8601", "2026-01-02"),
    ("expiration", "2999-01-01T00:00:00"),
    ("json_string", '{"a": [1]}'),
    ("timezone", "Europe/Berlin"),
    ("timezone", "UTC"),
    ("cron_expression", "*/5 0-6,20 1 jan mon-fri"),
    ("cron_expression", "0 0 * * 7"),
    ("test_constr", 3),
]
WRONG = [
    ("ip_addr", "192.168.0.256"),
    ("ip_addr", ""),
    ("net_cidr", "10.0.0.0"),
    ("net_cidr", "10.0.0.0/33"),
    ("ip_or_cidr", "10.0.0.0/x"),
    ("mac_addr", "fa:16:3e:00:11"),
    ("mac_addr", "fa:16-3e:00:11:22"),
    ("dns_name", "-a.org"),
    ("dns_name", "a..org"),
    ("dns_name", "example.123"),
    ("dns_name", "a" * 64),
    ("rel_dns_name", "x" * 256),
    ("dns_domain", "example.org"),
    ("iso_8601", "tomorrow"),
    ("expiration", "1999-01-01T00:00:00Z"),
    ("expiration", "never"),
    ("json_string", "{"),
    ("json_string", "[" * 100_000),
    ("json_string", 5.5j),
    ("timezone", "Mars/Olympus"),
    ("timezone", "../../etc/passwd"),
    ("timezone", ""),
    ("cron_expression", "* * * *"),
    ("cron_expression", "60 * * * *"),
    ("cron_expression", "*/0 * * * *"),
    ("cron_expression", "a * * * *"),
]


@pytest.mark.parametrize(("name", "value"), FINE)
def test_what_it_is_for_passes(name, value):
    assert custom_check(name, value) is None


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_what_it_is_not_for_is_told_with_a_reason(name, value):
    said = custom_check(name, value)
    assert said is not None
    assert said.startswith(f"Error validating value '{value}': ")
    assert len(said) > len(f"Error validating value '{value}': ")
