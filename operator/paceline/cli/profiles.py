"""Profiles without a cluster: finds a deployment's profile in a file's objects, and the deployments that name one."""

from collections.abc import Collection, Iterator
from typing import Any

from paceline import api
from paceline.api import Problem, problems
from paceline.api.problems import is_ours
from paceline.core.manifest import Object

DEPLOYMENT_KIND = "SpeculativeDeployment"
PROFILE = "BenchmarkProfile"


def is_a(kind: str, one: Any) -> bool:
    return is_ours(one) and one.get("kind") == kind


def profile_for(deployment: Object, objects: Collection[Any]) -> Object | None:
    """The first valid profile with that name; an unwritten namespace matches any."""
    found = (one for one in objects if is_a(PROFILE, one) and _is_of(one, deployment) and not problems(one))
    return next(found, None)


def naming(profiles: Collection[Object], objects: Collection[Any]) -> Iterator[dict[str, Any]]:
    """The deployments that name one of the profiles."""
    deployments = (one for one in objects if is_a(DEPLOYMENT_KIND, one))
    return (one for one in deployments if any(_is_of(profile, one) for profile in profiles))


def resolved_profile(deployment: Object, profile: Object) -> dict[str, Any]:
    """The deployment with its profile's values. Raises InvalidManifestError if it contradicts a lock."""
    return api.with_profile(api.stored(deployment), api.stored(profile))


def missing(name: str) -> Problem:
    """The note that a profile was not checked."""
    message = f"not checked: the values of BenchmarkProfile {name}, which is in none of the files"
    return Problem(path="spec.benchmark.profileRef", message=message, note=True)


def may_meet(one: Object, other: Object) -> bool:
    """Whether both objects may be in one namespace: it is the same, or one of them does not name it."""
    spaces = {(each.get("metadata") or {}).get("namespace") for each in (one, other)} - {None}
    return len(spaces) <= 1


def _is_of(profile: Object, deployment: Object) -> bool:
    named = (profile.get("metadata") or {}).get("name")
    return named is not None and named == api.profile_of(deployment) and may_meet(profile, deployment)
