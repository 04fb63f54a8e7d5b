"""The version of a release, which stands in several files: what they say, and another one for all of them."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
VERSION = re.compile(r"\d+\.\d+\.\d+(?:-(?:alpha|beta|rc)\.\d+)?")
"""Semantic versions as Helm, registries and Artifact Hub take them: 0.2.0, 0.2.0-rc.1."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line that says the version; the group of `line` is what stands before it."""

    file: str
    line: str

    def pattern(self) -> re.Pattern[str]:
        return re.compile(rf'(?m)^({self.line}"?)([^"\s]+)')

    def said(self, root: Path = ROOT) -> str:
        found = self.pattern().findall((root / self.file).read_text())
        if len(found) != 1:
            raise ValueError(f"{self.file}: {self.line!r} stands there {len(found)} times")
        return str(found[0][1])

    def say(self, version: str, root: Path = ROOT) -> None:
        path = root / self.file
        path.write_text(self.pattern().sub(rf"\g<1>{version}", path.read_text()))


PLACES = (
    Place("operator/paceline/__init__.py", "__version__ = "),
    Place("pyproject.toml", "version = "),
    Place("paceline_emulator/pyproject.toml", "version = "),
    Place("charts/paceline/Chart.yaml", "version: "),
    Place("charts/paceline/Chart.yaml", "appVersion: "),
    Place("deploy/kustomize/example/kustomization.yaml", "  newTag: "),
)
"""The first is the one that counts."""

RENDERED = Place("deploy/kustomize/base/install.yaml", " +image: paceline:")
"""Written from the chart by `make chart`."""


def current(root: Path = ROOT) -> str:
    return PLACES[0].said(root)


def faults(tag: str, root: Path = ROOT) -> list[str]:
    """Why a release may not be made of this tree as `tag`."""
    version = tag.removeprefix("v")
    wrong = [] if tag.startswith("v") else [f"the tag is {tag}, not v{tag}"]
    if not VERSION.fullmatch(version):
        wrong.append(f"{version} is no version such as 0.2.0 or 0.2.0-rc.1")
    said = [(place, place.said(root)) for place in PLACES]
    wrong += [f"{place.file}: {place.line}{one}, not {version}" for place, one in said if one != version]
    rendered = RENDERED.said(root)
    return wrong + [f"{RENDERED.file}: it is of {rendered}, not {version}: run `make chart`"] * (rendered != version)
