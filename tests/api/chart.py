"""The chart as helm renders it, with values of a test's own."""

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from tests.support.apiserver import BINARIES, BUILD, Running

CHART = Path(__file__).parents[2] / "charts" / "paceline"
HOME = "paceline-system"
"""The namespace of the release; the release is `paceline`, and so is the operator's service account."""


def rendered(**values: Any) -> list[dict[str, Any]]:
    """Every object; `values` as --set-json takes them, their dots written as two underscores."""
    subprocess.run([BUILD, "helm"], check=True, stdout=subprocess.DEVNULL)
    argv = [BINARIES / "helm", "template", "paceline", CHART, "--namespace", HOME, *_said(values)]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise ValueError(done.stderr)
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def installed(apiserver: Running, release: str, namespace: str, **values: Any) -> str:
    """What helm says of an installation that it asks the API server about and does not make; empty where it may be."""
    subprocess.run([BUILD, "helm"], check=True, stdout=subprocess.DEVNULL)
    argv = [BINARIES / "helm", "--kubeconfig", apiserver.kubeconfig, "install", release, CHART, "--dry-run=server"]
    where = ["--namespace", namespace, "--set", "crds.enabled=false", *_said(values)]
    done = subprocess.run([*argv, *where], check=False, capture_output=True, text=True, timeout=60)
    return done.stderr if done.returncode else ""


def _said(values: Mapping[str, Any]) -> list[str]:
    return [f"--set-json={key.replace('__', '.')}={json.dumps(value)}" for key, value in values.items()]


def of_kind(objects: Iterable[dict[str, Any]], *kinds: str) -> list[dict[str, Any]]:
    return [one for one in objects if one["kind"] in kinds]
