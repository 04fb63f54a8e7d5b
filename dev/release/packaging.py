"""The chart as it is published: with the image's digest, and with what Artifact Hub shows of it."""

import re
import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dev.release import changelog, versions

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "paceline"
EXAMPLES = ("qwen3-8b.yaml", "benchmark-only.yaml", "benchmark-profile.yaml")
"""The last object of each is one of each kind, shown on the cards of the CRDs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    image: str
    """Without tag and digest."""
    digest: str
    platforms: Sequence[str]
    source: str
    """The repository's address; empty: none is said."""


def values(text: str, published: Published) -> str:
    """values.yaml whose image is the published one."""
    found = re.search(r"(?m)^image:\n(?:  .*\n)+", text)
    if found is None:
        raise ValueError("values.yaml has no block `image:`")
    block = found[0]
    for key, value in (("repository", published.image), ("digest", published.digest)):
        block, times = re.subn(rf'(?m)^(  {key}:) (?:"[^"]*"|\S+)', rf"\1 {value}", block)
        if times != 1:
            raise ValueError(f"values.yaml: image.{key} stands there {times} times")
    return text[: found.start()] + block + text[found.end() :]


def annotations(published: Published, notes: str, examples: Sequence[str]) -> dict[str, str]:
    """What only a release knows; the rest stands in Chart.yaml. Each is YAML, in a string."""
    version = versions.current()
    platforms = "".join(f"\n    - {platform}" for platform in published.platforms)
    said = {
        "images": f"- name: paceline\n  image: {published.image}:{version}@{published.digest}\n  platforms:{platforms}",
        "changes": "\n".join(
            f"- kind: {kind.lower()}\n  description: {_quoted(entry)}" for kind, entry in changelog.entries(notes)
        ),
        "crdsExamples": "\n".join("-\n" + textwrap.indent(example.strip(), "  ") for example in examples),
        "prerelease": f'"{str("-" in version).lower()}"',
    }
    if published.source:
        links = {
            "source": "",
            "documentation": f"/tree/v{version}/docs",
            "how to verify": f"/blob/v{version}/docs/release.md",
            "support": "/issues",
        }
        said["links"] = "\n".join(f"- name: {name}\n  url: {published.source}{path}" for name, path in links.items())
    return said


def metadata(text: str, published: Published, notes: str, examples: Sequence[str]) -> str:
    """Chart.yaml, whose annotations stand at its end."""
    if not re.search(r"(?m)^annotations:\n(?:  .*\n)+\Z", text):
        raise ValueError("Chart.yaml must end with its annotations")
    for name, value in annotations(published, notes, examples).items():
        block = value if value.startswith('"') else "|\n" + textwrap.indent(value, "    ")
        text += f"  artifacthub.io/{name}: {block}\n"
    if published.source:
        text = re.sub(r"(?m)^(?=keywords: )", f"home: {published.source}\nsources: [{published.source}]\n", text)
    return text


def write(target: Path, published: Published) -> None:
    notes = changelog.notes(versions.current(), changelog.CHANGELOG.read_text())
    shutil.copytree(CHART, target)
    shutil.copy(ROOT / "LICENSE", target)
    for name, text in (
        ("values.yaml", values((target / "values.yaml").read_text(), published)),
        (
            "Chart.yaml",
            metadata(
                (target / "Chart.yaml").read_text(),
                published,
                notes,
                [(ROOT / "examples" / example).read_text().split("\n---\n")[-1] for example in EXAMPLES],
            ),
        ),
    ):
        (target / name).write_text(text)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
