"""What a destroy leaves of bucket and repository: nothing, or all, or it does not begin."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Account, Failed, Workshop

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
