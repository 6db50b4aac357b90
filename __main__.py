"""The Pulumi program of a runfleet stack: `pulumi up` builds the fleet that its settings describe."""

import signal
import sys

import pulumi
from pulumi.runtime import get_config_env, get_config_secret_keys_env

from infra.lookup import NoAnswer
from infra.mistakes import Refused
from infra.program import build_fleet, planned_fleet

ALREADY_TOLD = 32
"""Exit status by which Pulumi's language host knows that the user has seen the reason."""

# When a resource fails, the engine interrupts this program: it goes at once, so that the reason
# is not buried under a traceback.
signal.signal(signal.SIGINT, signal.SIG_DFL)

try:
    plan, secrets = planned_fleet(
        get_config_env(),
        secret_keys=frozenset(get_config_secret_keys_env()),
        stack=pulumi.get_stack(),
        project=pulumi.get_project(),
    )
except (Refused, NoAnswer) as reason:
    pulumi.log.error(reason.told(pulumi.get_stack()))
    sys.exit(ALREADY_TOLD)
for name, value in build_fleet(plan, secrets).items():
    pulumi.export(name, value)
