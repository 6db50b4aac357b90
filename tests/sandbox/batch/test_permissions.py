"""Policies as IAM reads them."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.batch.permissions import allows

SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:team/key-AbCdEf"


@pytest.mark.parametrize(
    ("statements", "allowed"),
    [
        ([], False),
        ([{"Action": "*", "Resource": "*"}], True),
        ([{"Action": "secretsmanager:getsecretvalue", "Resource": SECRET}], True),
        ([{"Action": ["ssm:*", "secretsmanager:Get*"], "Resource": [SECRET[:-6] + "??????"]}], True),
        ([{"Action": "secretsmanager:Get*", "Resource": SECRET[:-1]}], False),
        ([{"Action": "secretsmanager:Get*", "Resource": SECRET.upper()}], False),
        ([{"NotAction": "iam:*", "Resource": "*"}], True),
        ([{"NotAction": "secretsmanager:*", "Resource": "*"}], False),
        ([{"Action": "*", "NotResource": SECRET}], False),
        (
            [{"Action": "*", "Resource": "*"}, {"Effect": "Deny", "Action": "*", "Resource": SECRET}],
            False,
        ),
    ],
    ids=str,
)  # fmt: skip
def test_policies(statements: list[dict[str, Any]], allowed: object) -> None:
    documents = [{"Statement": {"Effect": "Allow"} | statement} for statement in statements]
    assert allows(documents, "secretsmanager:GetSecretValue", SECRET) is allowed
