"""Models in images (`oci://`): volumes that the kubelet pulls (ImageVolume: Kubernetes 1.31 and later, KEP-4639).

They are not copied to the cache volume, and prefetches ignore them: the digest is the commit.
"""

from collections.abc import Iterable

from paceline.core import Arm, Server
from paceline.core.manifest import Manifest
from paceline.core.names import image_key, image_path
from paceline.engines.pod_template import OF_IMAGES


def images_of(server: Server, arms: Iterable[Arm]) -> tuple[str, ...]:
    """References of the images for the target and for these arms' heads, without duplicates."""
    heads = (arm.draft.model for arm in arms if arm.draft and arm.draft.model)
    return tuple(dict.fromkeys(model.address.name for model in (server.target, *heads) if model.address.digest))


def image_volumes(images: Iterable[str]) -> list[Manifest]:
    """A digest that is already on the node need not be pulled."""
    return [{"name": _name(image), "image": {"reference": image, "pullPolicy": "IfNotPresent"}} for image in images]


def image_mounts(images: Iterable[str]) -> list[Manifest]:
    return [{"name": _name(image), "mountPath": image_path(image), "readOnly": True} for image in images]


def _name(image: str) -> str:
    return f"{OF_IMAGES}{image_key(image)}"
