"""Before a submission: is the image there, for these machines, and which one is it exactly?

Speaks to the image's registry, through submit.images.registry and submit.images.ecr.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from submit.errors import Refused
from submit.fleet import Fleet
from submit.images.fetching import Denied, NoAnswer, NotFound
from submit.images.names import DOCKER_HUB, EcrPlace, ImageName, ecr_place, parse_image
from submit.images.platforms import Found, NoImage, refuse_other_platform
from submit.images.registry import Credentials, look_up
from submit.plan import Submission, pinned_digest
from submit.records import Scope
from submit.sending import kept_experiment
from submit.session import Session
from submit.standing import Look

SKIP = "--no-image-check goes on without a look"


def digest_sent(session: Session, submission: Submission) -> tuple[bool, str | None]:
    """Whether jobs of the experiment were sent from here before, and with which digest; no call."""
    kept = kept_experiment(submission, log_group="", now=0.0)
    rows = session.ledger().rows(kept)
    return bool(rows), pinned_digest(row.request for row in rows)


def digest_seen(session: Session, submission: Submission, seen: Look) -> str | None:
    """The digest with which others have sent the jobs that were seen: one call."""
    first = min(seen.jobs, key=lambda job: (job.created_ms, job.job_id))
    backend = session.backend(Scope(submission.account, submission.region))
    status = backend.poll([first.job_id]).get(first.job_id)
    return status.digest if status else None


def check_image(
    text: str,
    fleet: Fleet,
    queue_name: str,
    environ: Mapping[str, str],
    note: Callable[[str], None],
) -> str | None:
    """The image's digest; None where its registry does not tell, which `note` is told.

    Raises Refused for an image that there is not, or that the queue's machines can't run.
    """
    image = parse_image(text)
    if not image.is_local and ecr_place(image.registry) is None and is_rehearsal(environ):
        return None
    try:
        found = _look_up(image, environ)
    except NotFound as err:
        raise Refused(
            "no-such-image", f"{_host(image)} has no image {text}", f"submit image ls; {SKIP}"
        ) from err
    except NoImage as err:
        raise Refused(
            "no-such-image",
            f"{text} is nothing that a machine can run, but {err}",
            f"submit image ls --repository {text.partition('@')[0].rpartition(':')[0] or text}",
        ) from err
    except Denied as err:
        if ecr_place(image.registry):  # the machines' own role counts, not that of who submits
            note(f"the image {text} could not be looked up: {err}; it goes on unchecked")
            return None
        raise Refused(
            "image-denied",
            f"{_host(image)} does not show {text}: there is none, or it is not for all ({err})",
            f"docker login {image.registry}, if it is yours; {SKIP}",
        ) from err
    except NoAnswer as err:
        note(
            f"the image {text} could not be looked up at {_host(image)}: {err}; it goes on unchecked"
        )
        return None
    if not found.platforms:
        note(
            f"{_host(image)} does not say for which machines {text} is built; it goes on unchecked"
        )
    refuse_other_platform(text, found, fleet, queue_name)
    return found.digest


def is_rehearsal(environ: Mapping[str, str]) -> bool:
    """Whether AWS is one on this machine, which pulls no images."""
    url = environ.get("AWS_ENDPOINT_URL_BATCH") or environ.get("AWS_ENDPOINT_URL") or ""
    host = urlsplit(url).hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")


def _look_up(image: ImageName, environ: Mapping[str, str]) -> Found:
    place = ecr_place(image.registry)
    if place:
        return _ecr(image, place)

    def credentials() -> Credentials | None:
        from submit.images.credentials import docker_credentials  # noqa: PLC0415 # when wanted

        return docker_credentials(image.registry, environ)

    return look_up(image, credentials)


def _ecr(image: ImageName, place: EcrPlace) -> Found:
    from submit.images import ecr  # noqa: PLC0415 # loads boto3

    return ecr.look_up(image, place)


def _host(image: ImageName) -> str:
    return "Docker Hub" if image.registry == DOCKER_HUB else image.registry
