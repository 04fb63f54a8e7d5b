"""A deployment with the values of its profile: the only place that merges them, before anything else is read."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from paceline.api.model import as_sent
from paceline.api.problems import InvalidManifestError, Problem
from paceline.api.reasons import Reason
from paceline.core.manifest import Object

WITH = {"minServing": "capacityPolicy"}
"""Field of spec.benchmark → its owner: a deployment that writes the owner does not get the field from the profile."""
_LONGEST_VALUE = 60
"""Maximum characters of a value in a message."""


def profile_of(manifest: Object) -> str:
    """The name of the profile that a deployment names; "" if it names none."""
    name = _object(_object(_object(manifest, "spec"), "benchmark"), "profileRef").get("name")
    return name if isinstance(name, str) else ""


def with_profile(manifest: dict[str, Any], profile: Object | None, *, required: bool = False) -> dict[str, Any]:
    """The deployment with the profile's values for the fields that it leaves out, and without the reference. `profile`
    is None if none has that name. `required`: a deployment of this namespace must name a profile.

    Raises InvalidManifestError with the reason for Stalled."""
    name = profile_of(manifest)
    if not name and required:
        raise _refused(
            Reason.ProfileRequired,
            "spec.benchmark.profileRef",
            "must name a BenchmarkProfile: the installation requires one",
        )
    if not name:
        return manifest
    if profile is None:
        raise _refused(Reason.ProfileNotFound, "spec.benchmark.profileRef.name", f"there is no BenchmarkProfile {name}")
    spec, given = as_sent(_object(manifest, "spec")), as_sent(_object(profile, "spec"))
    if broken := list(_broken(spec, given, name)):
        raise InvalidManifestError(broken, Reason.ProfileLocked)
    written = {field: value for field, value in spec["benchmark"].items() if field != "profileRef"}
    locked = given.get("locked") or ()
    offered = {
        field: value
        for field, value in _object(given, "benchmark").items()
        if (owner := WITH.get(field)) not in written or owner in locked
    }
    gate = {**_object(given, "gate"), **_object(spec, "gate")}
    return {**manifest, "spec": {**spec, "benchmark": offered | written, **({"gate": gate} if gate else {})}}


def _broken(spec: Object, given: Object, name: str) -> Iterator[Problem]:
    """Fields whose value differs from the one that the profile locks."""
    locked, gate = given.get("locked") or (), _object(given, "gate")
    for path, written, of_profile, section in (
        ("spec.benchmark", _object(spec, "benchmark"), _object(given, "benchmark"), ""),
        ("spec.gate", _object(spec, "gate"), gate, "gate"),
        *((f"spec.pools[{i}].gate", _object(pool, "gate"), gate, "gate") for i, pool in enumerate(_pools(spec))),
    ):
        for field, value in written.items():
            lock = section or WITH.get(field, field)
            if lock in locked and value != of_profile.get(field):
                yield Problem(path=f"{path}.{field}", message=_way_out(name, lock, of_profile.get(field)))


def _way_out(name: str, lock: str, value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    has = f", and has {text}" if value is not None and len(text) <= _LONGEST_VALUE else ""
    return f"must be left out: BenchmarkProfile {name} locks {lock}{has}"


def _refused(reason: Reason, path: str, message: str) -> InvalidManifestError:
    return InvalidManifestError([Problem(path=path, message=f"{message}; {LIST}")], reason)


LIST = "kubectl get benchmarkprofiles lists the namespace's"


def _object(of: Object, field: str) -> Object:
    """{} for other types: the manifest may have any shape."""
    value = of.get(field)
    return value if isinstance(value, Mapping) else {}


def _pools(spec: Object) -> list[Object]:
    pools = spec.get("pools")
    return [pool if isinstance(pool, Mapping) else {} for pool in pools] if isinstance(pools, list) else []
