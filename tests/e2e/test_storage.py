"""What a destroy leaves of bucket and repository: nothing, or all, or it does not begin."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Account, Failed, Stack, Workshop

pytestmark = [pytest.mark.engine, pytest.mark.slow]

SETTINGS = {
    "instanceTypes": ["c6g.medium"],
    "spot": False,
    "bucket": True,
    "repository": True,
}


def test_protected_then_retained_then_taken_back_and_deleted(
    account: Account, project: Path, workshop: Workshop
) -> None:
    empty = account.everything()
    stack = workshop(project, "keeps")
    stack.configure(**SETTINGS)
    stack.up()
    stood = account.everything()
    with pytest.raises(Failed, match="it is protected"):  # by the preview that comes first
        stack.run("destroy", "--stack", stack.name, "--yes")
    assert account.everything() == stood

    s3 = account.sandbox.client("s3")
    (bucket,) = (name for kind, name in stood - empty if kind == "bucket")
    s3.put_object(Bucket=bucket, Key="keeps/model.bin", Body=b"weights")
    stack.configure(**SETTINGS, storageOnDestroy="retain")
    stack.up()
    stack.destroy()
    kept = account.everything() - empty
    assert kept == {("bucket", bucket), ("repository", "runfleet/keeps")}
    assert s3.get_object(Bucket=bucket, Key="keeps/model.bin")["Body"].read() == b"weights"
    encryption = s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]
    assert encryption["Rules"]
    assert s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"][
        "BlockPublicAcls"
    ]

    stack.configure(**SETTINGS, storageOnDestroy="delete")
    with pytest.raises(Failed, match="RepositoryAlreadyExists"):
        stack.up()
    stack.destroy()
    taken_back(account, stack)
    stack.destroy()
    assert account.everything() - empty == {("bucket", bucket)}


def taken_back(account: Account, stack: Stack) -> None:
    """As the guide says: the very repository, and nothing left to do."""
    before = created(account)
    stack.run(
        *("import", "aws:ecr/repository:Repository", "images", "runfleet/keeps", "--yes"),
        *("--protect=false", "--generate-code=false", "--stack", stack.name),
    )
    assert stack.plan()["Repository images"] == "update"  # storageOnDestroy is not AWS's to know
    stack.up()
    assert created(account) == before
    assert stack.plan() == {}


def created(account: Account) -> object:
    (found,) = account.sandbox.client("ecr").describe_repositories()["repositories"]
    return found["createdAt"]
