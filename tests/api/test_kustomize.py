"""deploy/kustomize: the chart's output without helm."""

import json
import subprocess
from pathlib import Path
from typing import Any

import yaml
from tests.api.chart import container, of_kind, rendered
from tests.support.apiserver import BINARIES, Running

from paceline import __version__

ROOT = Path(__file__).parents[2]
KUSTOMIZE = ROOT / "deploy" / "kustomize"
BASE = KUSTOMIZE / "base"


def built(directory: Path) -> list[dict[str, Any]]:
    command = [BINARIES / "kubectl", "kustomize", directory]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.load_all(done.stdout, yaml.CSafeLoader))


def keyed(objects: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
    return {(one["kind"], one["metadata"]["name"]): json.dumps(one, sort_keys=True) for one in objects}


def test_the_file_is_what_the_chart_renders_now() -> None:
    command = [ROOT / "dev" / "render-install", "-"]
    now = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert (BASE / "install.yaml").read_text() == now, "run `make generate`"


def test_the_base_is_the_charts_objects_and_a_namespace(apiserver: Running) -> None:
    objects = built(BASE)
    of_the_chart = [one for one in rendered() if one["kind"] != "Pod"]
    assert keyed(objects).items() - keyed(of_the_chart).items() == keyed(of_kind(objects, "Namespace")).items()
    assert len(objects) == len(of_the_chart) + 1
    apiserver.kubectl("create", "namespace", "paceline-system", check=False)
    strictly = ("--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts")
    apiserver.kubectl("apply", *strictly, "-k", str(BASE))


def test_an_overlays_image_is_that_of_prefetch_and_rounds_too() -> None:
    objects = built(KUSTOMIZE / "example")
    environment = {one["name"]: one.get("value") for one in container(objects)["env"]}
    image = f"registry.example.com/paceline:{__version__}"
    assert container(objects)["image"] == environment["PACELINE_IMAGE"] == image
    (deployment,) = of_kind(objects, "Deployment")
    assert deployment["spec"]["replicas"] == 2
