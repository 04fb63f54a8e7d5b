"""The deployments and runs of a file, for commands that go on with them. A deployment has the values of its profile."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from paceline import api
from paceline.api.text import documents
from paceline.cli.options import reason
from paceline.cli.profiles import DEPLOYMENT, PROFILE, is_a, naming, profile_for, whole
from paceline.cli.validate import NOTHING, found, line, of_text, read

Manifest = dict[str, Any]
RUN = "BenchmarkRun"


class RefusedError(ValueError):
    """A file that cannot be gone on with; the lines that `paceline validate` would print."""


def is_ours(one: Any) -> bool:
    return is_a(DEPLOYMENT, one) or is_a(RUN, one)


def ours(file: str, beside: Collection[Manifest] = ()) -> tuple[Manifest, ...]:
    """As `everything`, without others."""
    return tuple(manifest for manifest in everything(file, beside) if is_ours(manifest))


def everything(file: str, beside: Collection[Manifest] = ()) -> tuple[Manifest, ...]:
    """All objects, of which at least one is ours, and all of ours are good; `-` is stdin. `beside` it are objects of a
    cluster: profiles that the file's deployments name, and deployments that name the file's profiles and are not in it.
    Raises RefusedError."""
    if Path(file).is_dir():
        raise RefusedError(f"{file}: must be a file, not a directory")
    try:
        text = read(file)
    except (OSError, ValueError) as error:
        raise RefusedError(f"{file}: {reason(error)}") from error
    if problems := [line(file, problem) for problem in of_text(text, beside) if not problem.note]:
        raise RefusedError("\n".join(problems))
    manifests = list(documents(text))
    objects = [*manifests, *beside]
    manifests += _concerned(manifests, objects)
    if not any(map(is_ours, manifests)):
        raise RefusedError(f"{file}: {NOTHING}")
    return tuple(_as_stored(file, one, objects) if is_ours(one) else one for one in manifests)


def _concerned(manifests: Collection[Any], objects: Collection[Any]) -> list[Manifest]:
    """Deployments that name a profile among the manifests, and are not among them. Raises RefusedError."""
    there = {_name(one) for one in manifests if is_a(DEPLOYMENT, one)}
    profiles = [one for one in manifests if is_a(PROFILE, one)]
    concerned = [one for one in naming(profiles, objects) if _name(one) not in there]
    faults = [line(_name(one), fault) for one in concerned for fault in found(one, None, objects) if not fault.note]
    if faults:
        raise RefusedError("\n".join(faults))
    return concerned


def _as_stored(file: str, manifest: Manifest, objects: Collection[Any]) -> Manifest:
    name = api.profile_of(manifest)
    if not name:
        return api.stored(manifest)
    if (profile := profile_for(manifest, objects)) is None:
        raise RefusedError(f"{file}: spec.benchmark.profileRef.name: add BenchmarkProfile {name} to the file")
    return whole(manifest, profile)


def _name(manifest: Manifest) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"
