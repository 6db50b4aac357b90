"""Bucket policies against plain HTTP, in a sandbox that has no TLS."""

from __future__ import annotations

import json

import pytest
from botocore.exceptions import ClientError

from sandbox.testing import running

pytestmark = pytest.mark.slow


def test_loopback_counts_as_tls() -> None:
    """Such a policy shuts nobody out here; any other refusal stands."""
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": ["arn:aws:s3:::team", "arn:aws:s3:::team/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    secret = {**statement, "Resource": "arn:aws:s3:::team/secret"}
    del secret["Condition"]
    document = {"Version": "2012-10-17", "Statement": [statement, secret]}
    with running() as sandbox:
        s3 = sandbox.client("s3")
        s3.create_bucket(Bucket="team")
        s3.put_bucket_policy(Bucket="team", Policy=json.dumps(document))
        s3.put_object(Bucket="team", Key="a", Body=b"1")
        assert s3.get_object(Bucket="team", Key="a")["Body"].read() == b"1"
        with pytest.raises(ClientError, match=r"403|Forbidden"):
            s3.put_object(Bucket="team", Key="secret", Body=b"1")
