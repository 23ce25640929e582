"""Signatures and signed URLs, compared with published examples."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
from urllib.parse import parse_qs, unquote, urlsplit

from orchestrator.resources.ec2_signatures import (
    access_key,
    new_secret,
    signal_url,
    signature_v2,
    signature_v4,
)
from orchestrator.resources.stack_context import StackLocation

PLACE = StackLocation("p 1", "web", "5d7c…", "sérver/1", "http://Api.Example:8004")


def test_version_2_signs_the_example_of_amazons_documentation():
    params = {
        "AWSAccessKeyId": "AKIAIOSFODNN7EXAMPLE",
        "Action": "DescribeJobFlows",
        "SignatureMethod": "HmacSHA256",
        "SignatureVersion": "2",
        "Timestamp": "2011-10-03T15:19:30",
        "Version": "2009-03-31",
    }
    secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    signed = signature_v2(secret, "GET", "elasticmapreduce.amazonaws.com", "/", params)
    assert signed == "i91nKc4PWAt0JJIdXwz9HxZCJDdiy6cf/Mj6vPxyYIs="
    assert (
        signature_v2(secret, "GET", "ELASTICMAPREDUCE.amazonaws.com", "/", {**params, "Signature": "x"})
        == signed
    )


def test_version_4_signs_the_example_of_amazons_documentation():
    signed = signature_v4(
        "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        "GET",
        "/",
        {"Action": "ListUsers", "Version": "2010-05-08"},
        {
            "content-type": "application/x-www-form-urlencoded; charset=utf-8",
            "host": "iam.amazonaws.com",
            "x-amz-date": "20150830T123600Z",
        },
        scope="20150830/us-east-1/iam/aws4_request",
        stamp="20150830T123600Z",
        body_hash=hashlib.sha256(b"").hexdigest(),
    )
    assert signed == "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"


def test_a_signed_url_names_the_resource_and_is_signed_over_the_unquoted_path():
    at = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    url = signal_url(PLACE, "key", "secret", "waitcondition", at=at)
    parts = urlsplit(url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    assert parts.netloc == "Api.Example:8004"
    assert unquote(parts.path) == f"/v1/waitcondition/{PLACE.arn}"
    assert " " not in url
    assert query.pop("Signature")
    assert query == {
        "AWSAccessKeyId": "key",
        "SignatureMethod": "HmacSHA256",
        "SignatureVersion": "2",
        "Timestamp": "2026-01-02T03:04:05Z",
    }
    text = f"PUT\napi.example:8004\n/v1/waitcondition/{PLACE.arn}\n" + "&".join(
        f"{name}={value.replace(':', '%3A')}" for name, value in sorted(query.items())
    )
    expected = base64.b64encode(hmac.digest(b"secret", text.encode(), "sha256")).decode()
    assert parse_qs(parts.query)["Signature"] == [expected]


def test_a_url_that_says_it_never_expires_has_no_time():
    assert "Timestamp" not in signal_url(PLACE, "key", "secret")
    assert "/v1/signal/" in signal_url(PLACE, "key", "secret")


def test_an_arn_keeps_its_parts_apart():
    assert PLACE.arn == "arn:openstack:heat::p%201:stacks/web/5d7c…/resources/s%C3%A9rver%2F1"


def test_a_key_is_the_same_for_every_try_and_a_secret_never():
    assert access_key("t-1") == access_key("t-1") != access_key("t-2")
    assert len(access_key("t-1")) == 32
    assert new_secret() != new_secret()
