"""What Batch needs to know of the other services: roles, profiles, subnets, groups, logs.

Reads moto's in-process backends; a network call to the sandbox's own port would do the same,
slower.
"""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

MOTO = threading.RLock()
"""Held by whoever is inside moto: its backends are plain dicts, one set for the process."""
ACCOUNT_ID = "123456789012"
"""The account that moto gives to any credentials."""
DEFAULT_LOG_GROUP = "/aws/batch/job"

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _inside_moto(function: Callable[_P, _R]) -> Callable[_P, _R]:
    @functools.wraps(function)
    def inside(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with MOTO:
            return function(*args, **kwargs)

    return inside


class Account:
    """One account in one region."""

    def __init__(
        self,
        region: str,
        account_id: str = ACCOUNT_ID,
        *,
        endpoint: Callable[[], str | None] = lambda: None,
    ) -> None:
        """`endpoint` is where jobs reach the sandbox, once it is there."""
        self.region = region
        self.endpoint = endpoint
        self.account_id = account_id

    def arn(self, kind: str, name: str) -> str:
        """The ARN of a Batch resource."""
        return f"arn:aws:batch:{self.region}:{self.account_id}:{kind}/{name}"

    @_inside_moto
    def role_fault(self, role: str, service: str) -> str | None:
        """Why `service` can't assume the role (its name or ARN), None if it can."""
        from moto.iam.models import iam_backends  # noqa: PLC0415 # only once Batch is used

        name = role.rpartition("/")[2]
        for candidate in iam_backends[self.account_id]["aws"].roles.values():
            if candidate.name == name:
                if service in _trusted(candidate.assume_role_policy_document):
                    return None
                return f"the role {role} does not trust {service}"
        return f"the role {role} does not exist"

    @_inside_moto
    def profile_fault(self, profile: str) -> str | None:
        """Why the instance profile (name or ARN) can't be used, None if it can."""
        from moto.iam.models import iam_backends  # noqa: PLC0415 # only once Batch is used

        name = profile.rpartition("/")[2]
        profiles = iam_backends[self.account_id]["aws"].instance_profiles.values()
        found = next((p for p in profiles if p.name == name), None)
        if found is None:
            return f"the instance profile {profile} does not exist"
        if not found.roles:
            return f"the instance profile {profile} has no role"
        return self.role_fault(found.roles[0].arn, "ec2.amazonaws.com")

    @_inside_moto
    def network_faults(self, subnets: list[str], groups: list[str]) -> list[str]:
        """Which subnets and security groups do not exist."""
        from moto.ec2.models import ec2_backends  # noqa: PLC0415 # only once Batch is used

        ec2 = ec2_backends[self.account_id][self.region]
        known = {name for zone in ec2.subnets.values() for name in zone}
        known_groups = {name for vpc in ec2.groups.values() for name in vpc}
        return [
            *(f"the subnet {name} does not exist" for name in subnets if name not in known),
            *(
                f"the security group {name} does not exist"
                for name in groups
                if name not in known_groups
            ),
        ]

    @_inside_moto
    def launch_template_fault(self, template: dict[str, Any]) -> str | None:
        """Why the launch template can't be used, None if it can."""
        from moto.ec2.models import ec2_backends  # noqa: PLC0415 # only once Batch is used

        ec2 = ec2_backends[self.account_id][self.region]
        wanted = template.get("launchTemplateId") or template.get("launchTemplateName")
        by_name = {t.name: t for t in ec2.launch_templates.values()}
        found = ec2.launch_templates.get(str(wanted)) or by_name.get(str(wanted))
        if found is None:
            return f"the launch template {wanted} does not exist"
        version = template.get("version") or "$Default"
        if version not in {"$Default", "$Latest"} and not (
            version.isdigit() and 1 <= int(version) <= len(found.versions)
        ):
            return f"the launch template {wanted} has no version {version}"
        return None

    @_inside_moto
    def secret_value(self, source: str) -> str | None:
        """The value of a Secrets Manager secret or SSM parameter, None if there is none."""
        from moto.secretsmanager.models import secretsmanager_backends  # noqa: PLC0415
        from moto.ssm.models import ssm_backends  # noqa: PLC0415 # only for jobs with secrets

        if ":ssm:" in source or source.startswith("/"):
            name = "/" + source.partition(":parameter/")[2] if ":ssm:" in source else source
            parameter = ssm_backends[self.account_id][self.region].get_parameter(name)
            return str(parameter.value) if parameter else None
        secrets = secretsmanager_backends[self.account_id][self.region].secrets
        secret = secrets.get(source)
        if secret is None or secret.default_version_id is None:
            return None
        return str(secret.versions[secret.default_version_id]["secret_string"])

    @_inside_moto
    def open_log_stream(self, group: str, stream: str) -> bool:
        """Makes the stream; False where the group does not exist.

        Batch makes its default group by itself, and no other.
        """
        logs = self._logs()
        if group not in logs.groups:
            if group != DEFAULT_LOG_GROUP:
                return False
            logs.create_log_group(group, {})
        if stream not in logs.groups[group].streams:
            logs.create_log_stream(group, stream)
        return True

    @_inside_moto
    def put_log_events(self, group: str, stream: str, events: list[tuple[int, str]]) -> bool:
        """Appends (milliseconds, line) to the stream; False when it has been deleted since."""
        logs = self._logs()
        if group not in logs.groups or stream not in logs.groups[group].streams:
            return False
        logs.put_log_events(
            group, stream, [{"timestamp": at, "message": line} for at, line in events]
        )
        return True

    def _logs(self) -> Any:
        from moto.logs.models import logs_backends  # noqa: PLC0415 # only once jobs run

        return logs_backends[self.account_id][self.region]


def _trusted(policy: Any) -> set[str]:
    """The services that a trust policy lets assume the role."""
    document = json.loads(policy) if isinstance(policy, str) else policy
    statements = document.get("Statement", [])
    services: set[str] = set()
    for statement in statements if isinstance(statements, list) else [statements]:
        principal = statement.get("Principal", {})
        if statement.get("Effect") == "Allow" and isinstance(principal, dict):
            named = principal.get("Service", [])
            services |= {named} if isinstance(named, str) else set(named)
    return services
