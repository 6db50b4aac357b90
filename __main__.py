"""The Pulumi program of a runfleet stack: `pulumi up` builds the fleet that its settings describe."""

import pulumi
from pulumi.runtime import get_config_env, get_config_secret_keys_env

from infra.mistakes import Refused, told
from infra.program import build_fleet, planned_fleet

try:
    plan = planned_fleet(
        get_config_env(),
        secret_keys=frozenset(get_config_secret_keys_env()),
        stack=pulumi.get_stack(),
        project=pulumi.get_project(),
    )
except Refused as refused:
    raise pulumi.RunError(told(refused.mistakes, stack=pulumi.get_stack())) from None
pulumi.export("fleet", build_fleet(plan))
