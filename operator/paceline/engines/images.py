"""What the name of an image tells of the engine in it."""

import re

from paceline.engines import ENGINES

RELEASE = r"v?([0-9]+\.[0-9]+\.[0-9]+(?:\.?(?:post|rc|dev)[0-9]+)?)(?:[-_][A-Za-z0-9._-]*)?"
"""A tag of a release, such as v0.5.23-cu129; RE2 and Python alike."""
PUBLISHED = {name: one.capabilities.repository for name, one in ENGINES.items() if one.capabilities.repository}
"""Engine → OWNER/NAME, in any registry."""


def named(image: str) -> str:
    """The engine whose makers publish this image, or from whom it is mirrored; "" for any other."""
    repository = re.sub(r"(:[^/:@]*)?(@.*)?$", "", image)
    return next((name for name, own in PUBLISHED.items() if f"/{repository}".endswith(f"/{own}")), "")


def release(image: str) -> str:
    """Of a published image, by its tag; "" if it names none."""
    found = re.search(f":{RELEASE}(@.*)?$", image)
    return found[1] if found and named(image) else ""


def engine_and_version(engine: str | None, version: str | None, image: str) -> tuple[str, str]:
    """Engine and version as they are written, else as the image tells them."""
    return engine or named(image), version or release(image)
