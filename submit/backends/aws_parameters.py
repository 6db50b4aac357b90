"""The fleet document's parts in SSM Parameter Store. Speaks boto3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from submit.backends.aws_errors import answered
from submit.errors import ServiceFailed, WrongUse


def read_parameters(stack: str, region: str) -> dict[str, str]:
    """The parts by their names below the stack's path: one call for 10 (GetParametersByPath).

    Raises WrongUse without a region, ServiceFailed when there is none or AWS can't be asked.
    """
    import boto3  # noqa: PLC0415 # with AWS alone
    from botocore.exceptions import NoRegionError  # noqa: PLC0415 # with boto3

    path = f"/runfleet/{stack}/"
    try:
        ssm = boto3.client("ssm", region_name=region or None)
    except NoRegionError as err:
        raise WrongUse(
            "no-region",
            f"the fleet of {stack} is looked for in SSM, and no AWS region is chosen",
            "export AWS_REGION=us-east-1, or submit use TEAM --region us-east-1",
        ) from err
    read: Callable[..., Any] = ssm.get_parameters_by_path
    found: dict[str, str] = {}
    request: dict[str, Any] = {"Path": path, "Recursive": True}
    while True:
        page = answered(read, **request)
        found |= {item["Name"].removeprefix(path): item["Value"] for item in page["Parameters"]}
        if not page.get("NextToken"):
            break
        request["NextToken"] = page["NextToken"]
    if not found:
        raise ServiceFailed(
            "not-published",
            f"there is no fleet of {stack} in SSM ({ssm.meta.region_name}, {path}): the stack has "
            "another name or region, is not up, or does not publish",
            "pulumi config set publish true && pulumi up; or run from the folder of the project",
        )
    return found
