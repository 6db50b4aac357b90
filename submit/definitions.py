"""What an experiment's jobs have in common: a job definition, named by its content. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from submit.errors import Refused
from submit.experiment import Experiment, retries_of
from submit.fleet import Fleet
from submit.job_names import slug
from submit.resources import JobResources
from submit.runside import script

MAX_DEFINITION_BYTES = 24 * 1024
MAIN_NODE = 0
ALL_NODES = "0:"
"""From the first to the last (NodeRangeProperty, targetNodes)."""

Request = dict[str, Any]


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """A job definition, named by the digest of its content: equal content is registered once.

    The image counts there as it was asked for. What its tag has meant makes revisions, so that who
    asks for the name learns whether anybody can have sent this before, whatever it meant then.
    """

    name: str
    request: Request
    """RegisterJobDefinition's parameters."""

    @property
    def image(self) -> str:
        """What its jobs run."""
        return image_of(self.request)


def image_of(definition: Mapping[str, Any]) -> str:
    """The image of a definition, as it is registered or described; the nodes of a job have one."""
    nodes = definition.get("nodeProperties")
    container = nodes["nodeRangeProperties"][0]["container"] if nodes else None
    return str((container or definition["containerProperties"])["image"])


def define(
    experiment: Experiment,
    fleet: Fleet,
    resources: JobResources,
    environment: dict[str, str],
    image: str,
) -> Definition:
    """The definition of the experiment's jobs, with that much of their environment and that image.

    Raises Refused for one that AWS Batch does not take.
    """
    container = _container(experiment, fleet, resources, environment, image)
    request: Request = {
        **_kind(container, resources.nodes),
        "retryStrategy": retry_strategy(retries_of(experiment) + 1),
        "propagateTags": True,
        "tags": {**fleet.tags, "runfleet:stack": fleet.stack},
    }
    if resources.timeout_s is not None:
        request["timeout"] = {"attemptDurationSeconds": resources.timeout_s}
    # Tags are no part of what runs: a team that renames one keeps its definitions.
    content = {key: value for key, value in request.items() if key != "tags"}
    content |= _kind({**container, "image": experiment.image}, resources.nodes)
    digest = hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()[:16]
    name = f"runfleet-{slug(fleet.stack)[:90]}-{digest}"
    request = {"jobDefinitionName": name, **request}
    size = len(msgspec.json.encode(request))
    if size > MAX_DEFINITION_BYTES:
        raise Refused(
            "grid-too-long",
            f"the command, its parameters' values and the environment make a job definition of "
            f"{size:,} bytes; AWS Batch takes {MAX_DEFINITION_BYTES:,}",
            "keep long values in a file of the image and pass their names or numbers",
        )
    return Definition(name=name, request=request)


def _kind(container: Request, nodes: int) -> Request:
    """A container, or the same on several nodes, of which the first is the main one: when it ends,
    Batch ends the others.
    """
    if nodes == 1:
        return {
            "type": "container",
            "platformCapabilities": ["EC2"],
            "containerProperties": container,
        }
    return {
        "type": "multinode",
        "nodeProperties": {
            "numNodes": nodes,
            "mainNode": MAIN_NODE,
            "nodeRangeProperties": [{"targetNodes": ALL_NODES, "container": container}],
        },
    }


def _container(
    experiment: Experiment,
    fleet: Fleet,
    resources: JobResources,
    environment: dict[str, str],
    image: str,
) -> Request:
    requirements = [
        {"type": "VCPU", "value": str(resources.vcpus)},
        {"type": "MEMORY", "value": str(resources.memory_mib)},
    ]
    if resources.gpus:
        requirements.append({"type": "GPU", "value": str(resources.gpus)})
    container: Request = {
        "image": image,
        "command": ["sh", "-c", script(), "runfleet"],
        "jobRoleArn": fleet.job_role_arn,
        "executionRoleArn": fleet.execution_role_arn,
        "resourceRequirements": requirements,
        # An init as PID 1 hands SIGTERM on to the training and reaps what it leaves behind.
        "linuxParameters": {"initProcessEnabled": True, "sharedMemorySize": resources.shm_mib},
        "logConfiguration": {
            "logDriver": "awslogs",
            "options": {"awslogs-group": fleet.log_group},
        },
    }
    if experiment.folder:  # of the own machine: AWS takes the image's
        container["workingDirectory"] = experiment.folder
    if environment:
        container["environment"] = pairs(environment)
    if experiment.secrets:
        container["secrets"] = [
            {"name": name, "valueFrom": fleet.secrets[name]} for name in experiment.secrets
        ]
    return container


def retry_strategy(tries: int) -> Request:
    """So many tries at most, for lost machines alone."""
    return {
        "attempts": tries,
        # A lost machine is worth another try, a bug is not. No rule that matches means retry,
        # so the last rule catches all.
        "evaluateOnExit": [
            {"onStatusReason": "Host EC2*", "action": "RETRY"},
            {"onReason": "*", "action": "EXIT"},
        ],
    }


def pairs(environment: dict[str, str]) -> list[dict[str, str]]:
    """As Batch writes an environment."""
    return [{"name": name, "value": value} for name, value in sorted(environment.items())]
