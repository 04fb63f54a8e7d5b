"""The published chart, against what Artifact Hub documents (artifacthub/hub docs/helm_annotations.md, May 2026)."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from dev.release import packaging, versions
from tests.support.apiserver import BINARIES, BUILD

from paceline.api.crd import crds

ROOT = Path(__file__).parents[3]
DIGEST = "sha256:" + "a" * 64
SOURCE = "https://example.com/team/paceline"
PUBLISHED = packaging.Published(
    image="registry.example.com/team/paceline",
    digest=DIGEST,
    platforms=("linux/amd64", "linux/arm64"),
    source=SOURCE,
)
CATEGORIES = {
    *("ai-machine-learning", "database", "integration-delivery", "monitoring-logging"),
    *("networking", "security", "storage", "streaming-messaging"),
}
CAPABILITIES = {"basic install", "seamless upgrades", "full lifecycle", "deep insights", "auto pilot"}
KINDS = {"added", "changed", "deprecated", "removed", "fixed", "security"}

Fits = Callable[[Any], bool]


def rows(*needed: str, also: tuple[str, ...] = ()) -> Fits:
    """A list of maps with these keys, each a text, and at most the others."""

    def fits(value: Any) -> bool:
        listed = yaml.safe_load(value)
        return bool(listed) and all(
            set(needed) <= set(row) <= {*needed, *also}
            and all(isinstance(row[key], str) and row[key] for key in needed)
            for row in listed
        )

    return fits


RULES: dict[str, Fits] = {
    "category": CATEGORIES.__contains__,
    "license": {"Apache-2.0"}.__contains__,  # SPDX's name of what LICENSE holds
    "operator": {"true", "false"}.__contains__,
    "prerelease": {"true", "false"}.__contains__,
    "operatorCapabilities": lambda value: value.lower() in CAPABILITIES,
    "images": rows("name", "image", also=("platforms", "whitelisted")),
    "crds": rows("kind", "version", "name", "displayName", "description"),
    "crdsExamples": lambda value: all(
        {"apiVersion", "kind", "metadata", "spec"} <= set(one) for one in yaml.safe_load(value)
    ),
    "links": rows("name", "url"),
    "changes": lambda value: (
        rows("kind", "description", also=("links",))(value) and {row["kind"] for row in yaml.safe_load(value)} <= KINDS
    ),
}


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("published") / "paceline"
    packaging.write(target, PUBLISHED)
    return target


@pytest.fixture(scope="module")
def shown(chart: Path) -> dict[str, Any]:
    """What Artifact Hub is told, by the annotation's last word."""
    said = yaml.safe_load((chart / "Chart.yaml").read_text())["annotations"]
    return {name.removeprefix("artifacthub.io/"): value for name, value in said.items()}


def test_every_annotation_is_one_that_artifact_hub_has(shown: dict[str, Any]) -> None:
    assert set(shown) == set(RULES)
    assert all(isinstance(value, str) for value in shown.values())
    assert [name for name, fits in RULES.items() if not fits(shown[name])] == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("category", "llm"),
        ("license", "Apache 2"),
        ("operatorCapabilities", "Best"),
        ("images", "- image: x"),
        ("links", "[]"),
        ("changes", "- {kind: improved, description: x}"),
    ],
)
def test_the_rules_can_be_broken(name: str, value: str) -> None:
    assert not RULES[name](value)


def test_the_crds_and_the_examples_are_ours(shown: dict[str, Any]) -> None:
    ours = {(crd["metadata"]["name"], crd["spec"]["names"]["kind"]) for crd in crds()}
    listed = yaml.safe_load(shown["crds"])
    assert {(row["name"], row["kind"]) for row in listed} == ours
    assert {row["version"] for row in listed} == {"v1alpha1"}
    examples = yaml.safe_load(shown["crdsExamples"])
    assert {one["kind"] for one in examples} == {kind for _, kind in ours} - {"BenchmarkRound"}  # nobody writes one
    files = [(ROOT / "examples" / name).read_text() for name in packaging.EXAMPLES]
    assert examples == [list(yaml.safe_load_all(text))[-1] for text in files]


def test_the_chart_that_is_published_names_the_image_by_its_digest(chart: Path, shown: dict[str, Any]) -> None:
    subprocess.run([BUILD, "helm"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([BINARIES / "helm", "lint", "--strict", "--quiet", chart], check=True, timeout=60)
    done = subprocess.run(
        [BINARIES / "helm", "template", "x", chart], check=True, capture_output=True, text=True, timeout=60
    )
    named = [
        container["image"]
        for one in yaml.safe_load_all(done.stdout)
        if one and one["kind"] == "Deployment"
        for container in one["spec"]["template"]["spec"]["containers"]
    ]
    assert named == [f"{PUBLISHED.image}@{DIGEST}"]
    (image,) = yaml.safe_load(shown["images"])
    assert image["image"] == f"{PUBLISHED.image}:{versions.current()}@{DIGEST}"
    assert image["platforms"] == ["linux/amd64", "linux/arm64"]


def test_its_links_lead_to_what_is_in_the_repository(shown: dict[str, Any]) -> None:
    links = {row["name"]: row["url"].removeprefix(SOURCE) for row in yaml.safe_load(shown["links"])}
    assert links["support"] == "/issues"
    inside = [path.split("/", 3)[3] for path in links.values() if path.startswith(("/tree/", "/blob/"))]
    assert len(inside) == 2
    assert [path for path in inside if not (ROOT / path).exists()] == []


def test_without_an_address_nothing_is_linked(tmp_path: Path) -> None:
    packaging.write(tmp_path / "paceline", packaging.Published(image="x", digest=DIGEST, platforms=(), source=""))
    said = yaml.safe_load((tmp_path / "paceline" / "Chart.yaml").read_text())
    assert "home" not in said
    assert "artifacthub.io/links" not in said["annotations"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("other: {}\n", "no block `image:`"),
        ("image:\n  repository: x\n", "image.digest stands there 0 times"),
    ],
)
def test_values_without_an_image_stop_a_release(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        packaging.values(text, PUBLISHED)


def test_the_repository_metadata_are_of_the_documented_form() -> None:
    said = yaml.safe_load((ROOT / "charts" / "artifacthub-repo.yml").read_text())
    assert set(said) <= {"repositoryID", "owners", "ignore"}
    assert all({"name", "email"} == set(owner) for owner in said["owners"])
