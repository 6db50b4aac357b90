"""The verbs as typed functions, for scripts and notebooks; the commands use nothing else.

    with Session(stack="rl") as session:
        experiment = Experiment(command=("python", "ppo.py"), seeds=(1, 2, 3))
        delivery = send(session, plan(session, experiment, "g4dn-xlarge-spot"))
        progress = wait(session, delivery.kept)

What takes long to import (SQLite, boto3) is imported by the verb that needs it: a plan is made
without any of it.
"""

from __future__ import annotations

from submit.api.acting import cancel, cancel_all, crashed_runs, put_back, remove, retry
from submit.api.building import build_image, image_repository, images, push_image, store_wandb_key
from submit.api.fleets import complete_queues, examine, in_use, own_machine, queues, use
from submit.api.metrics import (
    Summary,
    draw_curves,
    results,
    results_from_files,
    results_from_wandb,
    summarize,
)
from submit.api.planning import Plan, check_image, next_generation, plan
from submit.api.seeing import (
    Followed,
    check_selection,
    complete_experiments,
    experiments,
    failed_runs,
    find,
    follow,
    known,
    log,
    look,
    poll,
    runs,
    wait,
    wait_for,
    why_waiting,
)
from submit.api.sending import attended, send
from submit.experiment import Axis, Experiment, Resources
from submit.records import Fallback
from submit.session import Session

__all__ = [
    "Axis",
    "Experiment",
    "Fallback",
    "Followed",
    "Plan",
    "Resources",
    "Session",
    "Summary",
    "attended",
    "build_image",
    "cancel",
    "cancel_all",
    "check_image",
    "check_selection",
    "complete_experiments",
    "complete_queues",
    "crashed_runs",
    "draw_curves",
    "examine",
    "experiments",
    "failed_runs",
    "find",
    "follow",
    "image_repository",
    "images",
    "in_use",
    "known",
    "log",
    "look",
    "next_generation",
    "own_machine",
    "plan",
    "poll",
    "push_image",
    "put_back",
    "queues",
    "remove",
    "results",
    "results_from_files",
    "results_from_wandb",
    "retry",
    "runs",
    "send",
    "store_wandb_key",
    "summarize",
    "use",
    "wait",
    "wait_for",
    "why_waiting",
]
