"""Images as kubelets report them (`imageID`): which digest a container ran, and whether two differ. Also releases, as
reported by servers.

A node that pulled the image reports REPOSITORY@DIGEST; a node on which it was loaded by hand reports the image's id.
Only two of the same kind can be compared.
"""

_PARTS = ("", "+", ".", "-", "r", "a", "b")
"""What may follow a release in a version of the same release: `0.5.23.post1`, `0.33.0+cu130`, `0.1.0rc0`."""


def image_digest(image: str) -> str:
    """`sha256:…`; "" if the kubelet reported none."""
    return image.rpartition("@")[2] if "@" in image else image if image.startswith("sha256:") else ""


def differ(image: str, other: str) -> bool:
    """Whether these are certainly two different images."""
    comparable = bool(image_digest(image) and image_digest(other)) and ("@" in image) is ("@" in other)
    return comparable and image_digest(image) != image_digest(other)


def same_release(reported: str, wanted: str) -> bool:
    return reported.startswith(wanted) and reported.removeprefix(wanted)[:1] in _PARTS
