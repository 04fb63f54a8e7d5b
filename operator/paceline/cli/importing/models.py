"""Resolves paths and ids in the arguments to models, and finds the cache for them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from posixpath import normpath
from typing import Any

from paceline.engines.importing import Note, UnansweredError

REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*", re.ASCII)
HOMES = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")
"""Variables with the hub cache's path; HF_HOME holds its parent."""
DEFAULT_HUB = "/root/.cache/huggingface/hub"
DEFAULT_SIZE = "200Gi"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A volume of the engine's container. `claim` is "" if the volume is not a claim."""

    path: str
    volume: str
    claim: str
    below: str
    """The subPath."""
    differs: bool = False
    """Whether it has a subPathExpr, which may differ in another pod."""

    def holds(self, path: str) -> bool:
        return f"{normpath(path)}/".startswith(f"{normpath(self.path)}/")

    def on_the_volume(self, path: str) -> str:
        """Where `path` is on the volume, without a slash at either end."""
        inside = normpath(path)[len(normpath(self.path)) :]
        return "/".join(part for part in (self.below.strip("/"), inside.strip("/")) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheFound:
    """The resource's cache. `mount` is the Deployment's mount of that claim, if any."""

    field: Mapping[str, Any]
    mount: Mount | None
    notes: tuple[Note, ...] = ()


def mounts(pod: Mapping[str, Any], container: Mapping[str, Any]) -> tuple[Mount, ...]:
    """Longest path first."""
    volumes = {volume["name"]: volume for volume in pod.get("volumes") or ()}
    found = [
        Mount(
            path=str(mount["mountPath"]),
            volume=str(mount["name"]),
            claim=str((volumes.get(mount["name"], {}).get("persistentVolumeClaim") or {}).get("claimName", "")),
            below=str(mount.get("subPath", "")),
            differs=bool(mount.get("subPathExpr")),
        )
        for mount in container.get("volumeMounts") or ()
    ]
    return tuple(sorted(found, key=lambda mount: -len(mount.path)))


def source(named: str, found: tuple[Mount, ...], option: str) -> str:
    """The address as it is, else hf://OWNER/NAME or pvc://CLAIM/PATH. Raises UnansweredError, which names `option`."""
    if re.match(r"(hf|s3|gs|pvc|oci)://", named):
        return named
    say = f"say where it is with {option} hf://OWNER/NAME or pvc://CLAIM/PATH"
    if not named.startswith(("/", ".", "~")):
        if REPOSITORY.fullmatch(named):
            return f"hf://{named}"
        raise UnansweredError(f"{named} is not the name of a repository on the hub; {say}")
    mount = next((one for one in found if one.holds(named)), None)
    if mount is None:
        raise UnansweredError(f"{named} is on no volume of the container, so it is in the image; {say}")
    if not mount.claim:
        raise UnansweredError(f"{named} is on the volume {mount.volume}, which is not a PersistentVolumeClaim; {say}")
    if mount.differs:
        raise UnansweredError(f"{named} is below a subPathExpr of the claim {mount.claim}; {say}")
    path = mount.on_the_volume(named)
    if not path:
        raise UnansweredError(f"{named} is the root of the claim {mount.claim}: move the model into a directory; {say}")
    return f"pvc://{mount.claim}/{path}"


def claim_of_model(
    name: str, target: str, found: tuple[Mount, ...], env: Mapping[str, str], claim: str, size: str
) -> CacheFound:
    """The model's claim; else the claim with the hub's cache; else a new one. `claim` and `size` are options; if "",
    the Deployment decides."""
    if target.startswith("pvc://"):
        on = target.removeprefix("pvc://").partition("/")[0]
        return CacheFound(field={"claimName": on}, mount=next((one for one in found if one.claim == on), None))
    if claim:
        return CacheFound(field={"claimName": claim}, mount=next((one for one in found if one.claim == claim), None))
    hub = next((env[name] for name in HOMES if name in env), f"{env['HF_HOME']}/hub" if "HF_HOME" in env else "")
    hub = hub or DEFAULT_HUB
    mount = next((one for one in found if one.holds(hub)), None)
    if mount and mount.claim and not mount.differs and mount.on_the_volume(hub) == "hub" and not size:
        text = (
            f"the claim {mount.claim} stays the cache, with its contents. The prefetch writes to it as user and group "
        )
        text += "65532; if a shared file system ignores fsGroup, name its owner in spec.cache.securityContext, or have "
        note = Note(path=f"volumes[{mount.volume}]", text=f"{text}another claim made with --cache-size")
        return CacheFound(field={"claimName": mount.claim}, mount=mount, notes=(note,))
    notes = tuple(_elsewhere(mount, name, size))
    return CacheFound(
        field={"claim": {"name": f"{name}-models", "size": size or DEFAULT_SIZE}}, mount=None, notes=notes
    )


def _elsewhere(mount: Mount | None, name: str, size: str) -> Iterator[Note]:
    guessed = "" if size else f"; {DEFAULT_SIZE} is a guess: set it with --cache-size"
    made = f"models are downloaded to the new claim {name}-models{guessed}; --cache-claim names an existing one"
    if mount:
        yield Note(path=f"volumes[{mount.volume}]", text=f"was the hub's cache and is no longer read: {made}")
    else:
        yield Note(path="cache", text=made)
