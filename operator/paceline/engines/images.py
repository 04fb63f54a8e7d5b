"""Derives engine and version from an image's name."""

import re

from paceline.engines import ENGINES

RELEASE = r"v?([0-9]+\.[0-9]+\.[0-9]+(?:\.?(?:post|rc|dev)[0-9]+)?)(?:[-_][A-Za-z0-9._-]*)?"
"""A tag of a release, such as v0.5.23-cu129; RE2 and Python alike."""
PUBLISHED = {name: one.capabilities.repository for name, one in ENGINES.items() if one.capabilities.repository}
"""Engine → OWNER/NAME, in any registry."""


def named(image: str) -> str:
    """The engine of a published image or a mirror of one; "" for any other image."""
    repository = re.sub(r"(:[^/:@]*)?(@.*)?$", "", image)
    return next((name for name, own in PUBLISHED.items() if f"/{repository}".endswith(f"/{own}")), "")


def release(image: str) -> str:
    """Release in a published image's tag; "" if there is none."""
    found = re.search(f":{RELEASE}(@.*)?$", image)
    return found[1] if found and named(image) else ""


def engine_and_version(engine: str | None, version: str | None, image: str) -> tuple[str, str]:
    """Engine and version as written, else as derived from the image."""
    return engine or named(image), version or release(image)
