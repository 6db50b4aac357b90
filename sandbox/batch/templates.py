"""Launch templates of compute resources: what Batch takes. No I/O."""

from __future__ import annotations

from typing import Any

from sandbox.batch import limits
from sandbox.batch.instances import BUNDLES, expand
from sandbox.batch.rules import refusal


def check(template: dict[str, Any] | None, types: list[str]) -> None:
    """Raises ClientError for a template, or overrides of it, that AWS refuses.

    `types` are the compute environment's (API Reference, LaunchTemplateSpecification and
    LaunchTemplateSpecificationOverride).
    """
    if template is None:
        return
    _check_name(template, "launchTemplate")
    overrides = template.get("overrides", [])
    limits.LAUNCH_TEMPLATE_OVERRIDES.check(len(overrides))
    whole = {found.name for name in types for found in expand(name)}
    taken: set[str] = set()
    for override in overrides:
        _check_name(override, "launchTemplate.overrides")
        if not override.get("targetInstanceTypes"):
            raise refusal("launch templates", "launchTemplate.overrides needs targetInstanceTypes")
        for target in override["targetInstanceTypes"]:
            covered = _covered(target, whole)
            if covered & taken:
                raise refusal("launch templates", f"targetInstanceTypes overlap at {target}")
            taken |= covered


def all_of(template: dict[str, Any]) -> list[dict[str, Any]]:
    """The template and its overrides."""
    return [template, *template.get("overrides", [])]


def _check_name(template: dict[str, Any], where: str) -> None:
    if bool(template.get("launchTemplateId")) == bool(template.get("launchTemplateName")):
        raise refusal(
            "launch templates", f"{where} needs one of launchTemplateId and launchTemplateName"
        )
    if template.get("userdataType"):
        raise refusal("launch templates", f"{where}.userdataType is for EKS compute environments")


def _covered(target: str, whole: set[str]) -> set[str]:
    """The types that an override is for."""
    covered = {found.name for found in expand(target)}
    if target in BUNDLES:
        raise refusal("launch templates", f"targetInstanceTypes can't be {target}")
    if not covered or not covered <= whole:
        raise refusal(
            "launch templates", f"targetInstanceTypes {target} is not among the instanceTypes"
        )
    return covered
