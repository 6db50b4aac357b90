"""A submission as lines for the AWS CLI, which do the same when a shell reads them. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

from submit.definitions import Request
from submit.plan import Submission


def iter_aws_cli(submission: Submission) -> Iterator[str]:
    """The lines, one a call. The definition's revision is known when the first one has run, and
    is handed on in a variable; a definition that stands already gets a revision of equal content.
    """
    aws = ["aws", "batch", "--region", submission.region]
    register = [*aws, "register-job-definition", *_json(submission.definition.request)]
    register += ["--query", "jobDefinitionArn", "--output", "text"]
    yield f"definition=$({shlex.join(register)})"
    for job in submission.jobs:
        submit = shlex.join([*aws, "submit-job", *_json(job.request)])
        yield f'{submit} --job-definition "$definition"'


def _json(request: Request) -> list[str]:
    # In ASCII: no terminal's encoding comes between.
    return ["--cli-input-json", json.dumps(request)]
