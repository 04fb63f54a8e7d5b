"""The chart as helm renders it, with values of a test's own."""

import json
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from tests.support.apiserver import BINARIES, BUILD, Running

CHART = Path(__file__).parents[2] / "charts" / "paceline"
HOME = "paceline-system"
"""The namespace of the release; the release is `paceline`, and so is the operator's service account."""


def rendered(**values: Any) -> list[dict[str, Any]]:
    """Every object; `values` as --set-json takes them, their dots written as two underscores."""
    return template(*said(values))


def template(*options: str | Path, release: str = "paceline", namespace: str = HOME) -> list[dict[str, Any]]:
    """Every object of the chart, its test among them. ValueError with what helm says where it refuses."""
    return [one for one in yaml.load_all(text(*options, release=release, namespace=namespace), yaml.CSafeLoader) if one]


def text(*options: str | Path, release: str = "paceline", namespace: str = HOME) -> str:
    done = helm("template", release, CHART, "--namespace", namespace, *options)
    if done.returncode:
        raise ValueError(done.stderr)
    return done.stdout


def helm(*options: str | Path) -> subprocess.CompletedProcess[str]:
    argv = (_program(), *options)
    return subprocess.run(argv, check=False, capture_output=True, text=True, timeout=120)


@cache
def _program() -> Path:
    subprocess.run([BUILD, "helm"], check=True, stdout=subprocess.DEVNULL)
    return BINARIES / "helm"


def installed(apiserver: Running, release: str, namespace: str, **values: Any) -> str:
    """What helm says of an installation that it asks the API server about and does not make; empty where it may be."""
    argv = ("--kubeconfig", apiserver.kubeconfig, "install", release, CHART, "--dry-run=server")
    done = helm(*argv, "--namespace", namespace, "--set", "crds.enabled=false", *said(values))
    return done.stderr if done.returncode else ""


def said(values: Mapping[str, Any]) -> list[str]:
    return [f"--set-json={key.replace('__', '.')}={json.dumps(value)}" for key, value in values.items()]


def of_kind(objects: Iterable[dict[str, Any]], *kinds: str) -> list[dict[str, Any]]:
    return [one for one in objects if one["kind"] in kinds]


def container(objects: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The operator's."""
    (deployment,) = of_kind(objects, "Deployment")
    (found,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(found)
