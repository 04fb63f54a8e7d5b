"""What `paceline measure` has measured on this machine, once applied, is what a pool of the cluster promotes on."""

import subprocess
import sys
from pathlib import Path

import yaml
from tests.cluster.example import pool, small
from tests.support.kubernetes import Namespace
from tests.support.queries import pool_of, served

SURE = {"minImprovement": "0%", "maxRegression": "90%", "confidence": "50%"}
"""Whatever is faster at all is promoted: speeds here are of a busy machine."""


def test_a_pool_promotes_on_what_was_measured_without_a_cluster(here: Namespace, hub: str, tmp_path: Path) -> None:
    """The same models and the same server, so the same fingerprint; and no round in the cluster."""
    manifest = small("brought", hub, pools=[pool()], gate=SURE)
    (tmp_path / "pool.yaml").write_text(yaml.safe_dump(manifest))
    measure = [sys.executable, "-m", "paceline.cli", "measure", "pool.yaml", "--emulated", "-o", "run.yaml"]
    done = subprocess.run(measure, cwd=tmp_path, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kubectl apply -f run.yaml  evidence in a cluster" in done.stdout
    here.kubectl("apply", "-f", str(tmp_path / "run.yaml"))
    here.apply(manifest)
    found = here.wait("the winner to be served", served(here, "brought", "wide"), 90)
    entry = pool_of(found)
    assert [entry[of]["evidence"]["caveats"] for of in ("serving", "verdict")] == [["Emulated", "Imported"]] * 2
    (run,) = here.list("bench")
    assert (run["status"]["verdict"]["winner"], entry["serving"]["evidence"]["run"]) == (
        "wide",
        run["metadata"]["name"],
    )
    assert [job["metadata"]["name"] for job in here.list("jobs", "paceline.dev/component=round")] == []
