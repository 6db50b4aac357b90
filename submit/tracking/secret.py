"""Puts a key into the stack's secret. Speaks boto3."""

from __future__ import annotations

from submit.backends.aws_errors import answered


def put_secret(arn: str, value: str) -> None:
    """The secret has that value from now on: runs that start later get it.

    The value travels in the request's body alone. Raises ServiceFailed.
    """
    import boto3  # noqa: PLC0415 # takes a third of a second

    region = arn.split(":")[3]
    client = answered(
        boto3.session.Session(region_name=region).client, service_name="secretsmanager"
    )
    answered(client.put_secret_value, SecretId=arn, SecretString=value)
