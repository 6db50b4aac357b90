"""What a fleet keeps beside its machines, and whom it tells of them. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from infra import names
from infra.mistakes import Mistake
from infra.plans import (
    Account,
    BucketPlan,
    PublishingPlan,
    RepositoryPlan,
    Scope,
    SecretPlan,
    SecretsPlan,
    StoragePlan,
    SubmittersPlan,
)
from infra.settings import NAMESPACE, Settings

PARAMETER_BYTES = 4096
"""Of a standard parameter (Systems Manager, PutParameter)."""


def plan_secrets(secret_names: Iterable[str], stack: str, tags: dict[str, str]) -> SecretsPlan:
    return SecretsPlan(
        secrets=tuple(
            SecretPlan(
                name=name,
                name_prefix=names.named(
                    stack, f"/{name}-", limit=names.SECRET_PREFIX, before=f"{NAMESPACE}/"
                ),
                tags=tags,
            )
            for name in secret_names
        ),
        policy_name_prefix=f"{NAMESPACE}-secrets-",
    )


def plan_repository(settings: Settings, stack: str, tags: dict[str, str]) -> RepositoryPlan:
    keep = settings.repository_keep_images
    rule = {
        "rulePriority": 1,
        "description": f"Keep the {keep} newest images",
        "selection": {
            "tagStatus": "any",
            "countType": "imageCountMoreThan",
            "countNumber": keep,
        },
        "action": {"type": "expire"},
    }
    return RepositoryPlan(
        name=names.lower_named(stack, "", limit=names.REPOSITORY_NAME, before=f"{NAMESPACE}/"),
        lifecycle_policy=json.dumps({"rules": [rule]}, sort_keys=True),
        storage=_plan_storage(settings),
        tags=tags,
    )


def plan_bucket(settings: Settings, stack: str, tags: dict[str, str]) -> BucketPlan:
    return BucketPlan(
        name_prefix=names.lower_named(
            stack, "-", limit=names.BUCKET_PREFIX, before=f"{NAMESPACE}-"
        ),
        prefix=f"{stack}/",
        expiry_days=settings.bucket_expiry_days or None,
        policy_name_prefix=f"{NAMESPACE}-artifacts-",
        storage=_plan_storage(settings),
        tags=tags,
    )


def parameter_path(stack: str) -> str:
    """Where the parts of the fleet document are published."""
    return f"/{NAMESPACE}/{stack}"


def plan_publishing(stack: str, tags: dict[str, str]) -> PublishingPlan:
    return PublishingPlan(
        path=parameter_path(stack),
        tags_text=json.dumps(tags, ensure_ascii=False, separators=(",", ":")),
        tags=tags,
    )


def plan_submitters(
    settings: Settings, account: Account, stack: str, log_group: str, tags: dict[str, str]
) -> SubmittersPlan:
    return SubmittersPlan(
        name_prefix=names.named(
            stack, "-submitters-", limit=names.POLICY_PREFIX, before=f"{NAMESPACE}-"
        ),
        path=settings.role_path,
        scope=Scope(
            partition=account.partition,
            region=account.region,
            account=account.account,
            stack=stack,
            log_group=log_group,
            parameter_path=parameter_path(stack),
        ),
        tags=tags,
    )


def unpublishable(settings: Settings, plan: PublishingPlan | None) -> Iterator[Mistake]:
    """Tags that are too long for the parameter that tells them."""
    if plan is None:
        return
    size = len(plan.tags_text.encode())
    if size > PARAMETER_BYTES:
        problem = (
            f"these {len(settings.tags)} tags have {size} bytes with the program's own; a parameter "
            f"takes {PARAMETER_BYTES}: drop some, or set {NAMESPACE}:publish to false"
        )
        yield Mistake(path=f"{NAMESPACE}:tags", problem=problem)


def _plan_storage(settings: Settings) -> StoragePlan:
    choice = settings.storage_on_destroy
    return StoragePlan(
        protect=choice == "protect",
        retain=choice == "retain",
        empty_first=choice == "delete",
    )
