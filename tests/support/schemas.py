"""Schemas of other projects' kinds, as they are in the Go modules of those projects: nothing of them is copied here."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(os.environ.get("PACELINE_CACHE", Path.home() / ".cache" / "paceline"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """One file of a module; `sum` is that of go.sum."""

    module: str
    version: str
    sum: str
    file: str

    def path(self) -> Path:
        """Where it is, downloaded by `go mod download` if it is not in Go's cache yet."""
        path = f"{os.environ['PATH']}:{CACHE / 'go' / 'bin'}"
        said = subprocess.run(
            ["go", "mod", "download", "-json", f"{self.module}@{self.version}"],
            env=os.environ | {"PATH": path, "GOFLAGS": "-mod=mod"},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert said.returncode == 0, said.stderr or said.stdout
        found = json.loads(said.stdout)
        assert found["Sum"] == self.sum, f"{self.module} {self.version} is not what it was"
        return Path(found["Dir"]) / self.file


SCALED_OBJECT = Schema(
    module="github.com/kedacore/keda/v2",
    version="v2.16.1",
    sum="h1:LfYsxfSX8DjetLW8q9qnriImH936POrQJvE+caRoScI=",
    file="config/crd/bases/keda.sh_scaledobjects.yaml",
)
HTTP_ROUTE = Schema(
    module="sigs.k8s.io/gateway-api",
    version="v1.4.0",
    sum="h1:ZwlNM6zOHq0h3WUX2gfByPs2yAEsy/EenYJB78jpQfQ=",
    file="config/crd/standard/gateway.networking.k8s.io_httproutes.yaml",
)
INFERENCE_POOL = Schema(
    module="sigs.k8s.io/gateway-api-inference-extension",
    version="v1.5.0",
    sum="h1:w9Awt60cmI1vM7Y6N81h8wDCBP0WkmxpdI7GKY0v070=",
    file="config/crd/bases/inference.networking.k8s.io_inferencepools.yaml",
)
POD_MONITOR, PROMETHEUS_RULE = (
    Schema(
        module="github.com/prometheus-operator/prometheus-operator",
        version="v0.85.0",
        sum="h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
        file=f"example/prometheus-operator-crd/monitoring.coreos.com_{plural}.yaml",
    )
    for plural in ("podmonitors", "prometheusrules")
)
