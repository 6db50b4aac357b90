"""Pulumi components: a repository for images, a bucket for what jobs leave behind."""

from __future__ import annotations

import pulumi
from pulumi_aws import ecr, iam, s3

from infra.plans import BucketPlan, RepositoryPlan, StoragePlan
from infra.rights import may_use_bucket, only_over_tls


class ImageRepository(pulumi.ComponentResource):
    """`url` and `arn` of an ECR repository."""

    def __init__(self, plan: RepositoryPlan, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("runfleet:infra:ImageRepository", "images", None, opts)
        repository = ecr.Repository(
            "images",
            name=plan.name,
            image_scanning_configuration={"scan_on_push": True},
            image_tag_mutability="MUTABLE",
            force_delete=plan.storage.empty_first,
            tags=plan.tags,
            opts=pulumi.ResourceOptions.merge(
                _kept(self, plan.storage),
                # As `pulumi import` knows one that an earlier stack has left: of no component.
                pulumi.ResourceOptions(aliases=[pulumi.Alias(parent=pulumi.ROOT_STACK_RESOURCE)]),
            ),
        )
        ecr.LifecyclePolicy(
            "images",
            repository=repository.name,
            policy=plan.lifecycle_policy,
            # A new one would be put in place of the old, and the old then be deleted.
            opts=_kept(self, plan.storage, delete_before_replace=True),
        )
        self.url = repository.repository_url
        self.arn = repository.arn
        self.register_outputs({"url": self.url})


class ArtifactBucket(pulumi.ComponentResource):
    """`arn` and `url` of a private bucket; `url` ends with the team's prefix."""

    def __init__(
        self,
        plan: BucketPlan,
        *,
        user: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`user` is the name of the role that may use it."""
        super().__init__("runfleet:infra:ArtifactBucket", "artifacts", None, opts)
        bucket = s3.Bucket(
            "artifacts",
            bucket_prefix=plan.name_prefix,
            force_destroy=plan.storage.empty_first,
            tags=plan.tags,
            opts=_kept(self, plan.storage),
        )
        _set_up(bucket, plan, self)
        iam.RolePolicy(
            "use-artifacts",
            name_prefix=plan.policy_name_prefix,
            role=user,
            policy=bucket.arn.apply(lambda arn: may_use_bucket(arn, plan.prefix)),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.arn = bucket.arn
        self.url = pulumi.Output.format("s3://{0}/{1}", bucket.bucket, plan.prefix)
        self.register_outputs({"url": self.url})


def _set_up(bucket: s3.Bucket, plan: BucketPlan, parent: pulumi.Resource) -> None:
    """Private, over TLS alone, encrypted, versioned, and tidied up."""
    # One after the other: S3 refuses settings of one bucket that are made at the same time.
    private = s3.BucketPublicAccessBlock(
        "artifacts",
        bucket=bucket.bucket,
        block_public_acls=True,
        block_public_policy=True,
        ignore_public_acls=True,
        restrict_public_buckets=True,
        opts=_kept(parent, plan.storage),
    )
    over_tls = s3.BucketPolicy(
        "artifacts",
        bucket=bucket.bucket,
        policy=bucket.arn.apply(only_over_tls),
        opts=_kept(parent, plan.storage, depends_on=[private]),
    )
    encrypted = s3.BucketServerSideEncryptionConfiguration(
        "artifacts",
        bucket=bucket.bucket,
        rules=[{"apply_server_side_encryption_by_default": {"sse_algorithm": "AES256"}}],
        opts=_kept(parent, plan.storage, depends_on=[over_tls]),
    )
    versioned = s3.BucketVersioning(
        "artifacts",
        bucket=bucket.bucket,
        versioning_configuration={"status": "Enabled"},
        opts=_kept(parent, plan.storage, depends_on=[encrypted]),
    )
    s3.BucketLifecycleConfiguration(
        "artifacts",
        bucket=bucket.bucket,
        rules=[
            {
                "id": "tidy",
                "status": "Enabled",
                "filter": {"prefix": ""},
                "expiration": {"days": plan.expiry_days} if plan.expiry_days else None,
                "noncurrent_version_expiration": {"noncurrent_days": 30},
                "abort_incomplete_multipart_upload": {"days_after_initiation": 7},
            }
        ],
        opts=_kept(parent, plan.storage, depends_on=[versioned]),
    )


def _kept(
    parent: pulumi.Resource,
    plan: StoragePlan,
    *,
    delete_before_replace: bool | None = None,
    depends_on: list[pulumi.Resource] | None = None,
) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(
        parent=parent,
        protect=plan.protect,
        retain_on_delete=plan.retain,
        delete_before_replace=delete_before_replace,
        depends_on=depends_on,
    )
