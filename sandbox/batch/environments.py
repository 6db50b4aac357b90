"""Compute environments: what AWS takes, refuses, and does with them. No I/O of its own."""

from __future__ import annotations

import re
from typing import Any

from sandbox.batch import limits, tags, templates
from sandbox.batch.instances import InstanceType, expand, is_arm
from sandbox.batch.paging import paged, refuse_both
from sandbox.batch.rules import refusal, unsupported
from sandbox.batch.store import Resource, Store, new_id

UPDATABLE_STRATEGIES = frozenset(
    {
        "BEST_FIT_PROGRESSIVE",
        "SPOT_CAPACITY_OPTIMIZED",
        "SPOT_PRICE_CAPACITY_OPTIMIZED",
    }
)
"""With one of them and the service-linked role an environment is updated in place (User Guide,
Updating compute environments)."""
SCALING_MEMBERS = frozenset({"minvCpus", "maxvCpus", "desiredvCpus"})
"""What can be updated in place whatever the strategy."""
_SPOT_STRATEGIES = frozenset({"SPOT_CAPACITY_OPTIMIZED", "SPOT_PRICE_CAPACITY_OPTIMIZED"})
_NOT_ON_BATCH = re.compile("t[0-9]+[a-z]*|c1|m1|m2")
"""Families that CreateComputeEnvironment refuses: burstable ones, and some of the first generation."""
_SOME_TYPES = "optimal, c6g, c6g.large, m6g, m6g.large"
_NO_BATCH_IMAGE = {
    "a1": "Amazon Linux 2023 does not run on A1",
    "g5g": "there is no ARM image with NVIDIA drivers",
    "p3": "the NVIDIA image of Amazon Linux 2023 does not support P3",
    "g3": "the NVIDIA image of Amazon Linux 2023 does not support G3",
    "g3s": "the NVIDIA image of Amazon Linux 2023 does not support G3",
    "g4ad": "the image has no drivers for AMD GPUs",
}
_ARM_IMAGES = frozenset({"ECS_AL2023"})
_NVIDIA_IMAGES = frozenset({"ECS_AL2023_NVIDIA"})
_RETIRED_IMAGES = frozenset({"ECS_AL1", "ECS_AL2", "ECS_AL2_NVIDIA"})


def create(store: Store, request: dict[str, Any]) -> dict[str, Any]:
    """CreateComputeEnvironment. It is CREATING, and VALID or INVALID at the next tick."""
    name = request["computeEnvironmentName"]
    if not re.fullmatch(limits.NAME, name):
        raise refusal("legal names", f"computeEnvironmentName {name!r} is not a legal name")
    if name in store.environments:
        raise refusal("one of a name", "Object already exists")
    limits.COMPUTE_ENVIRONMENTS.check(len(store.environments) + 1)
    if request.get("state", "ENABLED") != "ENABLED":
        raise refusal(
            "created enabled", "a compute environment must be created in the ENABLED state"
        )
    resources = _checked_kind(request)
    tags.check(request.get("tags"))
    arn = store.account.arn("compute-environment", name)
    environment = Resource(
        name,
        arn,
        {
            "computeEnvironmentName": name,
            "computeEnvironmentArn": arn,
            "ecsClusterArn": f"arn:aws:ecs:{store.account.region}:{store.account.account_id}:"
            f"cluster/AWSBatch-{name}-{new_id()}",
            "type": request["type"],
            "state": request.get("state", "ENABLED"),
            "status": "CREATING",
            **_kind_detail(request, resources),
            "serviceRole": request.get("serviceRole")
            or f"arn:aws:iam::{store.account.account_id}:role/aws-service-role/"
            "batch.amazonaws.com/AWSServiceRoleForBatch",
            "context": request.get("context"),
            "containerOrchestrationType": "ECS",
            "uuid": new_id(),
        },
    )
    environment.faults = _later_faults(store, request.get("serviceRole"), resources)
    store.environments[name] = environment
    store.tags[arn] = dict(request.get("tags", {}))
    return {"computeEnvironmentName": name, "computeEnvironmentArn": arn}


def describe(store: Store, request: dict[str, Any]) -> dict[str, Any]:
    """DescribeComputeEnvironments: those asked for that exist, or all."""
    refuse_both(request, "computeEnvironments")
    wanted = request.get("computeEnvironments")
    found = (
        [e for e in map(store.environment, wanted) if e]
        if wanted
        else list(store.environments.values())
    )
    page, token = paged(found, request, limits.DESCRIBE_PAGE)
    return {
        "computeEnvironments": [e.detail | {"tags": dict(store.tags[e.arn])} for e in page],
        "nextToken": token,
    }


def update(store: Store, request: dict[str, Any]) -> dict[str, Any]:
    """UpdateComputeEnvironment, within what AWS lets be changed in place."""
    environment = store.existing_environment(request["computeEnvironment"])
    _refuse_while_changing(environment)
    if not set(request) - {"computeEnvironment"}:
        raise refusal(
            "something to update",
            "One of [state | compute-resources | service-role | unmanaged-vcpus] is required.",
        )
    if request.get("ecsSettings") is not None:
        raise unsupported("ecsSettings of compute environments")
    detail = environment.detail
    if detail["type"] == "UNMANAGED":
        return _update_unmanaged(store, environment, request)
    if request.get("unmanagedvCpus") is not None:
        raise refusal(
            "kinds of environments", "unmanagedvCpus is for UNMANAGED compute environments"
        )
    current = detail["computeResources"]
    changes = request.get("computeResources") or {}
    _refuse_frozen(detail, request, changes)
    merged = _merged(current, changes)
    _check_resources(merged if "desiredvCpus" in changes else merged | {"desiredvCpus": None})
    if changes.get("desiredvCpus", current["desiredvCpus"]) < current["desiredvCpus"]:
        raise refusal(
            "no scaling down by hand", "Manually scaling down compute environment is not supported"
        )
    if request.get("serviceRole"):
        detail["serviceRole"] = request["serviceRole"]
    replaced = _replaces(current, changes)
    detail["computeResources"] = merged
    detail["state"] = request.get("state", detail["state"])
    detail["updatePolicy"] = detail["updatePolicy"] | request.get("updatePolicy", {})
    if replaced:
        policy = detail["updatePolicy"]
        minutes = policy["jobExecutionTimeoutMinutes"]
        environment.replace_after_s = 0 if policy["terminateJobsOnUpdate"] else minutes * 60
    environment.faults = _later_faults(store, _own_role(detail), merged)
    environment.move("UPDATING")
    return {
        "computeEnvironmentName": environment.name,
        "computeEnvironmentArn": environment.arn,
    }


def delete(store: Store, request: dict[str, Any]) -> dict[str, Any]:
    """DeleteComputeEnvironment: only when DISABLED and in no queue."""
    environment = store.existing_environment(request["computeEnvironment"])
    _refuse_while_changing(environment)
    if environment.detail["state"] != "DISABLED":
        raise refusal(
            "environment delete order", "Cannot delete, compute environment state must be DISABLED"
        )
    for queue in store.queues.values():
        order = queue.detail["computeEnvironmentOrder"]
        if any(item["computeEnvironment"] == environment.arn for item in order):
            raise refusal(
                "environment delete order", "Cannot delete, found existing JobQueue relationship"
            )
    profile = environment.detail.get("computeResources", {}).get("instanceRole")
    fault = store.account.profile_fault(profile) if profile else None
    environment.faults = [fault] if fault else []
    environment.move("DELETING")
    return {}


def instance_types(environment: Resource) -> list[InstanceType]:
    """All types that the environment may start."""
    names = environment.detail.get("computeResources", {}).get("instanceTypes", [])
    return [found for name in names for found in expand(name)]


def _checked_kind(request: dict[str, Any]) -> dict[str, Any]:
    """The compute resources; none of an UNMANAGED environment.

    Raises ClientError for members that its type does not have (API Reference,
    CreateComputeEnvironment).
    """
    for member in ("eksConfiguration", "ecsSettings"):
        if request.get(member) is not None:
            raise unsupported(f"{member} of compute environments")
    resources: dict[str, Any] | None = request.get("computeResources")
    if request["type"] == "UNMANAGED":
        if resources:
            raise refusal(
                "kinds of environments", "computeResources is for MANAGED compute environments"
            )
        if request.get("unmanagedvCpus", 0) < 0:
            raise refusal("kinds of environments", "unmanagedvCpus must be 0 or more")
        if not request.get("serviceRole"):
            raise refusal(
                "kinds of environments",
                "serviceRole must be provided for an UNMANAGED compute environment",
            )
        return {}
    if request.get("unmanagedvCpus") is not None:
        raise refusal(
            "kinds of environments", "unmanagedvCpus is for UNMANAGED compute environments"
        )
    if not resources:
        raise refusal(
            "kinds of environments",
            "computeResources must be provided for a MANAGED compute environment",
        )
    _check_resources(resources)
    return resources


def _kind_detail(request: dict[str, Any], resources: dict[str, Any]) -> dict[str, Any]:
    """What only a MANAGED, or only an UNMANAGED, environment has."""
    if not resources:
        return {"unmanagedvCpus": request.get("unmanagedvCpus", 0)}
    low = resources.get("minvCpus", 0)
    return {
        "computeResources": {"minvCpus": 0, "desiredvCpus": low} | resources,
        "updatePolicy": {"terminateJobsOnUpdate": False, "jobExecutionTimeoutMinutes": 30},
    }


def _update_unmanaged(
    store: Store, environment: Resource, request: dict[str, Any]
) -> dict[str, Any]:
    for member in ("computeResources", "updatePolicy"):
        if request.get(member):
            raise refusal("kinds of environments", f"{member} is for MANAGED compute environments")
    for member in ("unmanagedvCpus", "state", "serviceRole", "context"):
        if request.get(member) is not None:
            environment.detail[member] = request[member]
    environment.faults = _later_faults(store, _own_role(environment.detail), {})
    environment.move("UPDATING")
    return {
        "computeEnvironmentName": environment.name,
        "computeEnvironmentArn": environment.arn,
    }


def _merged(current: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The resources after the change; what is set to an empty value goes (API Reference,
    ComputeResourceUpdate).
    """
    merged = {key: value for key, value in (current | changes).items() if value not in (None, "")}
    merged.pop("updateToLatestImageVersion", None)  # a wish, not a state
    if not merged.get("ec2Configuration"):
        merged.pop("ec2Configuration", None)
    template = merged.get("launchTemplate", {})
    if "" in (template.get("launchTemplateId"), template.get("launchTemplateName")):
        del merged["launchTemplate"]
    return merged


def _refuse_while_changing(environment: Resource) -> None:
    if environment.detail["status"] in {"CREATING", "UPDATING", "DELETING"}:
        raise refusal("one change at a time", "Cannot update, resource is being modified")


def _refuse_frozen(
    detail: dict[str, Any], request: dict[str, Any], changes: dict[str, Any]
) -> None:
    current = detail["computeResources"]
    service_linked = "/aws-service-role/" in detail["serviceRole"]
    in_place = service_linked and current.get("allocationStrategy") in UPDATABLE_STRATEGIES
    frozen = sorted(set(changes) - SCALING_MEMBERS)
    if frozen and not in_place:
        raise refusal(
            "update in place",
            f"{', '.join(frozen)} can't be updated: the compute environment must use the "
            "service-linked role and an allocation strategy of "
            f"{', '.join(sorted(UPDATABLE_STRATEGIES))}",
        )
    role = request.get("serviceRole")
    if role and service_linked != ("/aws-service-role/" in role):
        raise refusal(
            "service-linked for good",
            "A service-linked role can't be replaced by another service role, nor the other way",
        )


def _replaces(current: dict[str, Any], changes: dict[str, Any]) -> bool:
    """Whether the change makes new instances (User Guide, Infrastructure updates)."""
    kept = SCALING_MEMBERS | {"scalingPolicy", "updateToLatestImageVersion"}
    return bool(changes.get("updateToLatestImageVersion")) or any(
        value != current.get(member) for member, value in changes.items() if member not in kept
    )


def _check_resources(resources: dict[str, Any]) -> None:
    """What AWS checks before it answers."""
    spot = resources["type"] == "SPOT"
    if resources["type"] not in {"EC2", "SPOT"}:
        raise unsupported(f"compute resources of type {resources['type']}")
    _check_members(resources)
    if resources.get("capacityTags"):
        raise refusal("resources", "capacityTags is for ECS_MANAGED_INSTANCES")
    templates.check(resources.get("launchTemplate"), resources["instanceTypes"])
    _check_vcpus(resources)
    if "bidPercentage" in resources:
        if not spot:
            raise refusal("bid is for spot", "bidPercentage is for SPOT compute resources")
        limits.BID_PERCENTAGE.check(resources["bidPercentage"])
    strategy = resources.get("allocationStrategy", "BEST_FIT")
    if strategy in _SPOT_STRATEGIES and not spot:
        raise refusal(
            "bid is for spot", f"allocationStrategy {strategy} is for SPOT compute resources"
        )
    if spot and strategy == "BEST_FIT" and not resources.get("spotIamFleetRole"):
        raise refusal(
            "best fit needs a fleet role",
            "spotIamFleetRole must be provided for SPOT with BEST_FIT",
        )
    _check_types(resources)


def _check_members(resources: dict[str, Any]) -> None:
    for member, words in (("instanceRole", "Instance role"), ("minvCpus", "Resource minvCpus")):
        if resources.get(member) is None:
            raise refusal("resources", f"Error executing request, Exception : {words} is required.")
    for member in ("instanceTypes", "subnets"):
        if not resources.get(member):
            raise refusal("resources", f"computeResources.{member} must be provided")
    if not resources.get("securityGroupIds") and not resources.get("launchTemplate"):
        told = "securityGroupIds or launchTemplate"  # which may have the security groups
        raise refusal("resources", f"computeResources.{told} must be provided")


def _check_vcpus(resources: dict[str, Any]) -> None:
    """The sizes, and how they may change by themselves."""
    if resources.get("managedInstancesProvider") is not None:
        raise refusal("resources", "managedInstancesProvider is for ECS_MANAGED_INSTANCES")
    delay = resources.get("scalingPolicy", {}).get("minScaleDownDelayMinutes", 0)
    if delay:
        limits.SCALE_DOWN_DELAY_MINUTES.check(delay)
    low, high = resources["minvCpus"], resources["maxvCpus"]
    if not 0 <= low <= high or high < 1:
        raise refusal("sizes", f"minvCpus {low} must be between 0 and maxvCpus {high}")
    desired = resources.get("desiredvCpus")
    if desired is not None and not low <= desired <= high:
        raise refusal("sizes", "desiredvCpus must be between minvCpus and maxvCpus")


def _check_types(resources: dict[str, Any]) -> None:
    types: list[InstanceType] = []
    configurations = resources.get("ec2Configuration", [])
    own_image = resources.get("imageId") or any(c.get("imageIdOverride") for c in configurations)
    for name in resources["instanceTypes"]:
        family = name.partition(".")[0]
        if _NOT_ON_BATCH.fullmatch(family):
            raise refusal("types of Batch", f"Instance type can only be one of [{_SOME_TYPES}, …]")
        if family in _NO_BATCH_IMAGE and not own_image:
            raise refusal(
                "images fit", f"{name} needs an image of your own: {_NO_BATCH_IMAGE[family]}"
            )
        types += expand(name)
        if not expand(name):
            raise refusal("types exist", f"Instance type {name} is not a valid instance type")
    if len({is_arm(found.name) for found in types}) > 1:
        raise refusal("one architecture", "instanceTypes must all be of one architecture")
    if len({found.gpus > 0 for found in types}) > 1:
        raise refusal("no GPU mix", "GPU and non-GPU instance types can't be mixed")
    limits.EC2_CONFIGURATIONS.check(len(configurations))
    if own_image:
        return
    images = {configuration["imageType"] for configuration in configurations}
    for image in sorted(images & _RETIRED_IMAGES):
        raise refusal("retired images", f"{image} is no longer supported")
    for found in types:
        _check_image(found, images)


def _check_image(found: InstanceType, images: set[str]) -> None:
    if found.gpus and images and not images & _NVIDIA_IMAGES:
        raise refusal("images fit", f"{found.name} needs the image type ECS_AL2023_NVIDIA")
    if is_arm(found.name) and images and not images & _ARM_IMAGES:
        raise refusal("images fit", f"{found.name} needs the image type ECS_AL2023")


def _own_role(detail: dict[str, Any]) -> str | None:
    """The environment's service role, None for the service-linked one."""
    role = str(detail["serviceRole"])
    return None if "/aws-service-role/" in role else role


def _later_faults(store: Store, service_role: str | None, resources: dict[str, Any]) -> list[str]:
    """What AWS finds after it has answered: the environment becomes INVALID."""
    account = store.account
    used = templates.all_of(resources["launchTemplate"]) if resources.get("launchTemplate") else []
    groups = resources.get("securityGroupIds", [])
    faults = account.network_faults(resources.get("subnets", []), groups)
    if resources and not groups:
        faults += account.group_faults(used)
    checks = [account.profile_fault(resources["instanceRole"])] if resources else []
    if service_role:
        checks.append(account.role_fault(service_role, "batch.amazonaws.com"))
    if resources.get("spotIamFleetRole"):
        checks.append(account.role_fault(resources["spotIamFleetRole"], "spotfleet.amazonaws.com"))
    checks += [account.launch_template_fault(template) for template in used]
    return [*faults, *(fault for fault in checks if fault)]
