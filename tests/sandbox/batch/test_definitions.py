"""What RegisterJobDefinition takes and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.batch.ruling import cases, proves, refused

pytestmark = pytest.mark.slow
REQUIREMENTS = [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "100"}]


def strategy(rule: dict[str, str], count: int = 1) -> dict[str, Any]:
    """A definition with that rule of retries so many times."""
    rules = [{"action": "EXIT"} | rule] * count
    return {"retryStrategy": {"attempts": 2, "evaluateOnExit": rules}}


def on_efs(**configuration: Any) -> dict[str, Any]:
    """A definition with a volume on EFS."""
    efs = {"fileSystemId": "fs-1", **configuration}
    return {"containerProperties": {"volumes": [{"name": "v", "efsVolumeConfiguration": efs}]}}


def linux(**parameters: Any) -> dict[str, Any]:
    return {"containerProperties": {"linuxParameters": parameters}}


@cases(
    ("retry attempts", {"retryStrategy": {"attempts": 0}}, "retry attempts"),
    ("evaluateOnExit rules", strategy({"onReason": "*"}, 6), "evaluateOnExit"),
    ("retry rules", strategy({}), "condition"),
    ("retry rules", strategy({"onReason": "a*b"}), "may only end it"),
    ("retry rules", strategy({"onReason": "a(b"}), "letters, digits, periods"),
    ("retry rules", strategy({"onExitCode": "one"}), "it takes digits"),
    ("characters of a condition", strategy({"onStatusReason": "x" * 513}), "of a condition"),
    ("service model", strategy({"onReason": "*", "action": "STAY"}), "RETRY, EXIT"),
    (
        "attemptDurationSeconds",
        {"timeout": {"attemptDurationSeconds": 1}},
        "attemptDurationSeconds",
    ),
    ("image and resources", {"containerProperties": {"resourceRequirements": []}}, "needs VCPU"),
    (
        "image and resources",
        {"containerProperties": {"resourceRequirements": REQUIREMENTS[:1]}},
        "needs MEMORY",
    ),
    (
        "memory in MiB",
        {
            "containerProperties": {
                "resourceRequirements": [
                    REQUIREMENTS[0],
                    {"type": "MEMORY", "value": "3"},
                ]
            }
        },
        "memory in MiB",
    ),
    (
        "resource requirements",
        {"containerProperties": {"resourceRequirements": REQUIREMENTS + REQUIREMENTS[:1]}},
        "twice",
    ),
    ("roles are ARNs", {"containerProperties": {"jobRoleArn": "role"}}, "ARN"),
    (
        "secrets need a role",
        {"containerProperties": {"secrets": [{"name": "A", "valueFrom": "arn:x"}]}},
        "executionRoleArn",
    ),
    (
        "job definition size in bytes",
        {"containerProperties": {"command": ["sh", "-c", "x" * 25_000]}},
        "size in bytes",
    ),
    ("not on EC2", {"containerProperties": {"ephemeralStorage": {"sizeInGiB": 30}}}, "for Fargate"),
    (
        "kinds of definitions",
        {"containerProperties": {"instanceType": "c6g.medium"}},
        "for multinode",
    ),
    (
        "volumes",
        {"containerProperties": {"mountPoints": [{"sourceVolume": "x"}]}},
        "no volume",
    ),
    (
        "volumes",
        {"containerProperties": {"volumes": [{"name": "x"}, {"name": "x"}]}},
        "a name twice",
    ),
    (
        "ulimits",
        {"containerProperties": {"ulimits": [{"name": "nofile", "softLimit": 2, "hardLimit": 1}]}},
        "above its hard limit",
    ),
    ("Linux parameters", linux(swappiness=101), "between 0 and 100"),
    ("Linux parameters", linux(sharedMemorySize=0), "1 or more"),
    ("Linux parameters", linux(tmpfs=[{"containerPath": "t", "size": 1}]), "must be absolute"),
    ("Linux parameters", linux(tmpfs=[{"containerPath": "/t", "size": 0}]), "1 or more"),
    (
        "Linux parameters",
        linux(tmpfs=[{"containerPath": "/t", "size": 1, "mountOptions": ["cheese"]}]),
        "which is none",
    ),
    (
        "volumes",
        on_efs(authorizationConfig={"iam": "ENABLED"}),
        "needs transitEncryption",
    ),
    (
        "volumes",
        on_efs(transitEncryption="ENABLED", authorizationConfig={"iam": "ENABLED"}),
        "needs a jobRoleArn",
    ),
    (
        "volumes",
        on_efs(authorizationConfig={"accessPointId": "fsap-1"}),
        "needs transitEncryption",
    ),
    (
        "volumes",
        on_efs(rootDirectory="/x", authorizationConfig={"accessPointId": "fsap-1"}),
        "rootDirectory must be /",
    ),
    ("transitEncryptionPort", on_efs(transitEncryptionPort=65_536), "transitEncryptionPort"),
    ("characters of rootDirectory", on_efs(rootDirectory="/" * 4097), "rootDirectory"),
    (
        "volumes",
        {"containerProperties": {"volumes": [{"name": "a b"}]}},
        "name 'a b' is not legal",
    ),
    ("volumes", {"containerProperties": {"volumes": [{}]}}, "name None is not legal"),
    (
        "ulimits",
        {"containerProperties": {"ulimits": [{"name": "x", "softLimit": 1, "hardLimit": 1}]}},
        "the names are core",
    ),
    ("schedulingPriority", {"schedulingPriority": 10_000}, "schedulingPriority"),
    ("reserved tags", {"tags": {"Aws:x": "1"}}, "keeps for itself"),
    (
        "characters of an image",
        {"containerProperties": {"image": "a" * 256}},
        "characters of an image",
    ),
    ("image and resources", {"containerProperties": {"image": "a b"}}, "not a legal name"),
    (None, {"platformCapabilities": ["FARGATE"]}, "but EC2"),
    (
        "kinds of definitions",
        {"nodeProperties": {"numNodes": 1, "mainNode": 0, "nodeRangeProperties": []}},
        "for multinode",
    ),
)
def test_register_job_definition(world: Any, rule: str | None, change: Any, says: str) -> None:
    assert says in refused(rule, lambda: world.definition("bad", **change))
    assert "bad" not in world.sandbox.app.batch().store.definitions


@proves("volumes", "Linux parameters")
def test_volumes_that_aws_takes(world: Any) -> None:
    efs = {
        "fileSystemId": "fs-1",
        "rootDirectory": "/",
        "transitEncryption": "ENABLED",
        "transitEncryptionPort": 2999,
        "authorizationConfig": {"accessPointId": "fsap-1", "iam": "ENABLED"},
    }
    tmpfs = {"containerPath": "/t", "size": 1, "mountOptions": ["noexec", "mode=1777"]}
    container = {
        "jobRoleArn": "arn:aws:iam::123456789012:role/r",
        "volumes": [{"name": "v_1-a", "efsVolumeConfiguration": efs}],
        "mountPoints": [{"sourceVolume": "v_1-a", "containerPath": "/v"}],
        "linuxParameters": {"tmpfs": [tmpfs], "sharedMemorySize": 1},
    }
    assert world.definition("mounts", containerProperties=container)


@proves("retry rules")
def test_an_action_on_exit_comes_in_either_case(world: Any) -> None:
    """So does Terraform's provider send it, in lower case (API Reference, EvaluateOnExit)."""
    rule = {"onReason": "CannotPull: a.b*", "action": "retry"}
    arn = world.definition("lower", retryStrategy={"attempts": 2, "evaluateOnExit": [rule]})
    found = world.batch.describe_job_definitions(jobDefinitions=[arn])["jobDefinitions"][0]
    assert found["retryStrategy"]["evaluateOnExit"] == [rule]
    world.over(world.submit("true", jobDefinition=arn))
