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

from sandbox.batch import permissions

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
        wanted = template.get("launchTemplateId") or template.get("launchTemplateName")
        found = self._launch_template(template)
        if found is None:
            return f"the launch template {wanted} does not exist"
        version = template.get("version") or "$Default"
        if version not in {"$Default", "$Latest"} and not (
            version.isdigit() and 1 <= int(version) <= len(found.versions)
        ):
            return f"the launch template {wanted} has no version {version}"
        return None

    @_inside_moto
    def group_faults(self, templates: list[dict[str, Any]]) -> list[str]:
        """Which of the launch templates bring no security group, or one that does not exist."""
        faults = []
        for template in templates:
            if self.launch_template_fault(template):
                continue  # which tells it
            found = self._launch_template(template)
            data = found.get_version(template.get("version") or "$Default").data
            interfaces = data.get("NetworkInterfaces", [])
            groups = [
                *data.get("SecurityGroupIds", []),
                *(group for interface in interfaces for group in interface.get("Groups", [])),
            ]
            faults += self.network_faults([], groups)
            if not groups:
                faults.append(f"the launch template {found.name} has no security groups")
        return faults

    def _launch_template(self, template: dict[str, Any]) -> Any:
        from moto.ec2.models import ec2_backends  # noqa: PLC0415 # only once Batch is used

        wanted = str(template.get("launchTemplateId") or template.get("launchTemplateName"))
        known = ec2_backends[self.account_id][self.region].launch_templates
        return known.get(wanted) or next((t for t in known.values() if t.name == wanted), None)

    @_inside_moto
    def secret_fault(self, role: str, source: str) -> str | None:
        """Why the role can't read the secret or parameter, None if it can."""
        action, resource = self._reading(source)
        if not permissions.allows(self._policies(role), action, resource):
            return (
                f"AccessDeniedException: User: {role} is not authorized to perform: {action} on "
                f"resource: {resource} because no identity-based policy allows the {action} action"
            )
        if self.secret_value(source) is None:
            return f"ResourceNotFoundException: {source} can't be found"
        return None

    @_inside_moto
    def secret_value(self, source: str) -> str | None:
        """The value of a Secrets Manager secret or SSM parameter, None if there is none.

        A secret's ARN may end with a key of its JSON (User Guide, Specifying sensitive data).
        """
        from moto.secretsmanager.models import secretsmanager_backends  # noqa: PLC0415
        from moto.ssm.models import ssm_backends  # noqa: PLC0415 # only for jobs with secrets

        if ":secretsmanager:" not in source:
            name = source.partition(":parameter")[2] or source
            backend = ssm_backends[self.account_id][self.region]
            parameter = backend.get_parameter(name) or backend.get_parameter(name.lstrip("/"))
            return str(parameter.decrypt(parameter.value)) if parameter else None
        arn, key = _split_secret(source)
        secret = secretsmanager_backends[self.account_id][self.region].secrets.get(arn)
        if secret is None or secret.default_version_id is None:
            return None
        value = str(secret.versions[secret.default_version_id]["secret_string"])
        return _member(value, key) if key else value

    def _reading(self, source: str) -> tuple[str, str]:
        """The action that reads a secret or parameter, and its ARN."""
        if ":secretsmanager:" in source:
            return "secretsmanager:GetSecretValue", _split_secret(source)[0]
        name = source.partition(":parameter/")[2] or source.lstrip("/")
        arn = f"arn:aws:ssm:{self.region}:{self.account_id}:parameter/{name}"
        return "ssm:GetParameters", arn

    def _policies(self, role: str) -> list[Any]:
        from moto.iam.models import iam_backends  # noqa: PLC0415 # only once Batch is used

        name = role.rpartition("/")[2]
        for candidate in iam_backends[self.account_id]["aws"].roles.values():
            if candidate.name == name:
                managed = [
                    version.document
                    for policy in candidate.managed_policies.values()
                    for version in policy.versions
                    if version.is_default
                ]
                return [*candidate.policies.values(), *managed]
        return []

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

    @_inside_moto
    def log_tail(self, group: str | None, stream: str, count: int) -> list[str]:
        """The last lines of a stream; none where it is not there."""
        found = self._logs().groups.get(group or DEFAULT_LOG_GROUP)
        if found is None or stream not in found.streams:
            return []
        return [str(event.message) for event in found.streams[stream].events[-count:]]

    def _logs(self) -> Any:
        from moto.logs.models import logs_backends  # noqa: PLC0415 # only once jobs run

        return logs_backends[self.account_id][self.region]


def _split_secret(source: str) -> tuple[str, str]:
    """The ARN, and the key of its JSON (empty for the whole)."""
    parts = source.split(":")
    return ":".join(parts[:7]), parts[7] if len(parts) > 7 else ""  # noqa: PLR2004 # an ARN has 7


def _member(text: str, key: str) -> str | None:
    try:
        value = json.loads(text)[key]
    except (ValueError, KeyError, TypeError):
        return None
    return value if isinstance(value, str) else json.dumps(value)


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
