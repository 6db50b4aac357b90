"""S3: buckets and what is set on them, each a resource of its own. Speaks boto3."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

from botocore.exceptions import ClientError

from sandbox.provider.cloud import Cloud
from sandbox.provider.kind import (
    Kind,
    from_key_values,
    key_values,
    tags_of,
    with_tags,
)
from sandbox.provider.kinds.policies import same_json
from sandbox.provider.wire import Properties

PREFIX_LENGTH = 37
"""Of a bucketPrefix: 63 characters less the suffix (S3, Bucket naming rules)."""


class Bucket(Kind):
    token = "aws:s3/bucket:Bucket"  # noqa: S105 # Pulumi's word for a type
    label = "S3 Bucket"
    inputs = frozenset({"bucketPrefix", "forceDestroy", "region", "tags"})
    outputs = inputs | {
        "accelerationStatus",
        "acl",
        "arn",
        "bucket",
        "bucketDomainName",
        "bucketNamespace",
        "bucketRegion",
        "bucketRegionalDomainName",
        "corsRules",
        "grants",
        "hostedZoneId",
        "lifecycleRules",
        "logging",
        "objectLockConfiguration",
        "objectLockEnabled",
        "policy",
        "replicationConfiguration",
        "requestPayer",
        "serverSideEncryptionConfiguration",
        "tagsAll",
        "versioning",
        "website",
        "websiteDomain",
        "websiteEndpoint",
    }
    replaces = frozenset({"bucketPrefix"})

    def faults(self, inputs: Properties) -> list[tuple[str, str]]:
        found = super().faults(inputs)
        if len(inputs.get("bucketPrefix", "")) > PREFIX_LENGTH:
            reason = f"expected length to be in the range (0 - {PREFIX_LENGTH})"
            found.append(("bucketPrefix", reason))
        return found

    def final_name(self, inputs: Properties, unique: str) -> str:
        return f"{inputs.get('bucketPrefix', 'terraform-')}{unique}"

    def create(self, cloud: Cloud, name: str, inputs: Properties) -> str:
        _ = inputs
        elsewhere = (
            {}
            if cloud.region == "us-east-1"
            else {"CreateBucketConfiguration": {"LocationConstraint": cloud.region}}
        )
        cloud.client("s3").create_bucket(Bucket=name, **elsewhere)
        return name

    def complete(self, cloud: Cloud, resource_id: str, inputs: Properties) -> None:
        s3 = cloud.client("s3")
        tags = tags_of(inputs)
        if tags:
            s3.put_bucket_tagging(Bucket=resource_id, Tagging={"TagSet": key_values(tags)})
        else:
            s3.delete_bucket_tagging(Bucket=resource_id)

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        s3 = cloud.client("s3")
        if _or_none(s3.head_bucket, Bucket=resource_id) is None:
            return None
        tagging = _or_none(s3.get_bucket_tagging, Bucket=resource_id) or {"TagSet": []}
        domain = f"{resource_id}.s3.{cloud.region}.amazonaws.com"
        state = dict.fromkeys(self.outputs) | {
            "accelerationStatus": "",
            "arn": f"arn:{cloud.partition['id']}:s3:::{resource_id}",
            "bucket": resource_id,
            "bucketDomainName": f"{resource_id}.s3.amazonaws.com",
            "bucketPrefix": inputs.get("bucketPrefix", ""),
            "bucketRegion": cloud.region,
            "bucketRegionalDomainName": domain,
            "forceDestroy": inputs.get("forceDestroy", False),
            "hostedZoneId": "",
            "objectLockEnabled": False,
            "region": cloud.region,
            "requestPayer": "BucketOwner",
        }
        return with_tags(state, from_key_values(tagging["TagSet"]))

    def update(self, cloud: Cloud, resource_id: str, old: Properties, new: Properties) -> None:
        if tags_of(old) != tags_of(new):
            self.complete(cloud, resource_id, new)

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        s3 = cloud.client("s3")
        if _or_none(s3.head_bucket, Bucket=resource_id) is None:
            return
        if state.get("forceDestroy"):
            _empty(s3, resource_id)
        s3.delete_bucket(Bucket=resource_id)


class _OnBucket(Kind):
    """What is set on a bucket; its id is the bucket's name."""

    replaces = frozenset({"bucket"})

    def create(self, cloud: Cloud, name: str, inputs: Properties) -> str:
        _ = name
        self.put(cloud, inputs)
        return str(inputs["bucket"])

    def update(self, cloud: Cloud, resource_id: str, old: Properties, new: Properties) -> None:
        _ = resource_id, old
        self.put(cloud, new)

    def delete(self, cloud: Cloud, resource_id: str, state: Properties) -> None:
        _ = state
        _or_none(functools.partial(self.unset, cloud), bucket=resource_id)

    def put(self, cloud: Cloud, inputs: Properties) -> None:
        raise NotImplementedError

    def unset(self, cloud: Cloud, bucket: str) -> None:
        raise NotImplementedError


class BucketVersioning(_OnBucket):
    token = "aws:s3/bucketVersioning:BucketVersioning"  # noqa: S105 # Pulumi's word for a type
    label = "S3 Bucket Versioning"
    inputs = frozenset({"bucket", "region", "versioningConfiguration"})
    nested: ClassVar = {"versioningConfiguration": frozenset({"status"})}
    required = frozenset({"bucket", "versioningConfiguration"})
    outputs = inputs | {"expectedBucketOwner", "mfa"}

    def put(self, cloud: Cloud, inputs: Properties) -> None:
        status = inputs["versioningConfiguration"]["status"]
        cloud.client("s3").put_bucket_versioning(
            Bucket=inputs["bucket"], VersioningConfiguration={"Status": status}
        )

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        _ = inputs
        found = _or_none(cloud.client("s3").get_bucket_versioning, Bucket=resource_id)
        if not found or "Status" not in found:
            return None
        return {
            "bucket": resource_id,
            "expectedBucketOwner": "",
            "mfa": None,
            "region": cloud.region,
            "versioningConfiguration": {"status": found["Status"], "mfaDelete": ""},
        }

    def unset(self, cloud: Cloud, bucket: str) -> None:
        """Versioning can't be taken away, only halted."""
        cloud.client("s3").put_bucket_versioning(
            Bucket=bucket, VersioningConfiguration={"Status": "Suspended"}
        )


class BucketServerSideEncryptionConfiguration(_OnBucket):
    token = "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"  # noqa: S105 # Pulumi's word
    label = "S3 Bucket Server-side Encryption Configuration"
    inputs = frozenset({"bucket", "region", "rules"})
    nested: ClassVar = {
        "rules": frozenset({"applyServerSideEncryptionByDefault", "bucketKeyEnabled"}),
        "rules.applyServerSideEncryptionByDefault": frozenset({"sseAlgorithm"}),
    }
    required = frozenset({"bucket", "rules"})
    outputs = inputs | {"expectedBucketOwner"}

    def put(self, cloud: Cloud, inputs: Properties) -> None:
        rules = [
            {
                "ApplyServerSideEncryptionByDefault": {
                    "SSEAlgorithm": rule["applyServerSideEncryptionByDefault"]["sseAlgorithm"]
                },
                "BucketKeyEnabled": rule.get("bucketKeyEnabled", False),
            }
            for rule in inputs["rules"]
        ]
        cloud.client("s3").put_bucket_encryption(
            Bucket=inputs["bucket"], ServerSideEncryptionConfiguration={"Rules": rules}
        )

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        _ = inputs
        found = _or_none(cloud.client("s3").get_bucket_encryption, Bucket=resource_id)
        if found is None:
            return None
        rules = found["ServerSideEncryptionConfiguration"]["Rules"]
        return {
            "bucket": resource_id,
            "expectedBucketOwner": "",
            "region": cloud.region,
            "rules": [_encryption(rule) for rule in rules],
        }

    def unset(self, cloud: Cloud, bucket: str) -> None:
        cloud.client("s3").delete_bucket_encryption(Bucket=bucket)


class BucketPublicAccessBlock(_OnBucket):
    token = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"  # noqa: S105 # Pulumi's word
    label = "S3 Bucket Public Access Block"
    flags: ClassVar = {
        "blockPublicAcls": "BlockPublicAcls",
        "blockPublicPolicy": "BlockPublicPolicy",
        "ignorePublicAcls": "IgnorePublicAcls",
        "restrictPublicBuckets": "RestrictPublicBuckets",
    }
    inputs = frozenset({"bucket", "region", *flags})
    required = frozenset({"bucket"})
    outputs = inputs | {"skipDestroy"}

    def put(self, cloud: Cloud, inputs: Properties) -> None:
        wanted = {theirs: inputs.get(ours, False) for ours, theirs in self.flags.items()}
        cloud.client("s3").put_public_access_block(
            Bucket=inputs["bucket"], PublicAccessBlockConfiguration=wanted
        )

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        _ = inputs
        found = _or_none(cloud.client("s3").get_public_access_block, Bucket=resource_id)
        if found is None:
            return None
        now = found["PublicAccessBlockConfiguration"]
        return {
            "bucket": resource_id,
            "region": cloud.region,
            "skipDestroy": None,
            **{ours: now[theirs] for ours, theirs in self.flags.items()},
        }

    def unset(self, cloud: Cloud, bucket: str) -> None:
        cloud.client("s3").delete_public_access_block(Bucket=bucket)


class BucketLifecycleConfiguration(_OnBucket):
    token = "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"  # noqa: S105 # Pulumi's word
    label = "S3 Bucket Lifecycle Configuration"
    inputs = frozenset({"bucket", "region", "rules"})
    nested: ClassVar = {
        "rules": frozenset(
            {
                "abortIncompleteMultipartUpload",
                "expiration",
                "filter",
                "id",
                "noncurrentVersionExpiration",
                "status",
            }
        ),
        "rules.abortIncompleteMultipartUpload": frozenset({"daysAfterInitiation"}),
        "rules.expiration": frozenset({"days"}),
        "rules.filter": frozenset({"prefix"}),
        "rules.noncurrentVersionExpiration": frozenset({"noncurrentDays"}),
    }
    required = frozenset({"bucket"})
    outputs = inputs | {
        "expectedBucketOwner",
        "timeouts",
        "transitionDefaultMinimumObjectSize",
    }

    def put(self, cloud: Cloud, inputs: Properties) -> None:
        rules = [_to_rule(rule) for rule in inputs.get("rules", [])]
        cloud.client("s3").put_bucket_lifecycle_configuration(
            Bucket=inputs["bucket"], LifecycleConfiguration={"Rules": rules}
        )

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        _ = inputs
        s3 = cloud.client("s3")
        found = _or_none(s3.get_bucket_lifecycle_configuration, Bucket=resource_id)
        if found is None:
            return None
        return {
            "bucket": resource_id,
            "expectedBucketOwner": "",
            "region": cloud.region,
            "rules": [_from_rule(rule) for rule in found["Rules"]],
            "timeouts": None,
            "transitionDefaultMinimumObjectSize": "all_storage_classes_128K",
        }

    def unset(self, cloud: Cloud, bucket: str) -> None:
        cloud.client("s3").delete_bucket_lifecycle(Bucket=bucket)


class BucketPolicy(_OnBucket):
    token = "aws:s3/bucketPolicy:BucketPolicy"  # noqa: S105 # Pulumi's word for a type
    label = "S3 Bucket Policy"
    inputs = frozenset({"bucket", "policy", "region"})
    required = frozenset({"bucket", "policy"})
    outputs = inputs

    def put(self, cloud: Cloud, inputs: Properties) -> None:
        cloud.client("s3").put_bucket_policy(Bucket=inputs["bucket"], Policy=inputs["policy"])

    def read(self, cloud: Cloud, resource_id: str, inputs: Properties) -> Properties | None:
        found = _or_none(cloud.client("s3").get_bucket_policy, Bucket=resource_id)
        if found is None:
            return None
        return {
            "bucket": resource_id,
            "policy": same_json(inputs.get("policy"), found["Policy"]),
            "region": cloud.region,
        }

    def unset(self, cloud: Cloud, bucket: str) -> None:
        cloud.client("s3").delete_bucket_policy(Bucket=bucket)


def _to_rule(rule: Properties) -> dict[str, Any]:
    mapped: dict[str, Any] = {
        "ID": rule["id"],
        "Status": rule["status"],
        "Filter": {"Prefix": rule.get("filter", {}).get("prefix", "")},
    }
    if "expiration" in rule:
        mapped["Expiration"] = {"Days": rule["expiration"]["days"]}
    if "noncurrentVersionExpiration" in rule:
        days = rule["noncurrentVersionExpiration"]["noncurrentDays"]
        mapped["NoncurrentVersionExpiration"] = {"NoncurrentDays": days}
    if "abortIncompleteMultipartUpload" in rule:
        days = rule["abortIncompleteMultipartUpload"]["daysAfterInitiation"]
        mapped["AbortIncompleteMultipartUpload"] = {"DaysAfterInitiation": days}
    return mapped


def _from_rule(rule: dict[str, Any]) -> Properties:
    prefix = rule.get("Filter", {}).get("Prefix", "")
    state: Properties = {"id": rule["ID"], "status": rule["Status"], "filter": {"prefix": prefix}}
    if "Days" in rule.get("Expiration", {}):
        state["expiration"] = {"days": rule["Expiration"]["Days"]}
    if "NoncurrentVersionExpiration" in rule:
        days = rule["NoncurrentVersionExpiration"]["NoncurrentDays"]
        state["noncurrentVersionExpiration"] = {"noncurrentDays": days}
    if "AbortIncompleteMultipartUpload" in rule:
        days = rule["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"]
        state["abortIncompleteMultipartUpload"] = {"daysAfterInitiation": days}
    return state


def _encryption(rule: dict[str, Any]) -> Properties:
    chosen = rule["ApplyServerSideEncryptionByDefault"]
    return {
        "applyServerSideEncryptionByDefault": {
            "sseAlgorithm": chosen["SSEAlgorithm"],
            "kmsMasterKeyId": chosen.get("KMSMasterKeyID", ""),
        },
        "bucketKeyEnabled": rule.get("BucketKeyEnabled", False),
    }


def _empty(s3: Any, bucket: str) -> None:
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
        objects = [
            {"Key": item["Key"], "VersionId": item["VersionId"]}
            for item in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        ]
        if objects:
            s3.delete_objects(Bucket=bucket, Delete={"Objects": objects})


def _or_none(call: Any, **arguments: Any) -> Any:
    """What the call answers, None where AWS says that there is no such thing."""
    try:
        return call(**arguments)
    except ClientError as err:
        code = err.response["Error"]["Code"]
        if code == "404" or code.startswith("NoSuch") or code.endswith("NotFoundError"):
            return None
        raise
