"""Secrets planted wherever a server has or says them are in nothing that is kept of a measurement: status, evidence,
report, raw lines, the logs of client and planner, what is printed. A real round, on loopback."""

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from tests.unit.measure.test_refused import EXAMPLES, models
from tests.unit.measure.test_story import the_run
from tests.unit.round import leaking_server
from tests.unit.round.leaking_server import CUTS, DIES, NAMES, REFUSES, UNKNOWN

from paceline_emulator.hub import tokenizer

ROOT = Path(__file__).parents[3]
KNOWN = {
    "PACELINE_API_KEY": "canary-of-the-api-key-0123456789",
    "PACELINE_ADMIN_KEY": "canary-of-the-admin-key-0123456789",
    "HF_TOKEN": "canary-of-the-hub-0123456789",
    "DATABASE": "canary-of-the-database-0123456789",
}
PART = 8
"""Characters of a secret's beginning that are not there either: a text may have been cut within it."""
WAYS = {"dies": DIES, "refuses": REFUSES, "cuts": CUTS, "names": NAMES}


def question(directory: Path) -> Path:
    """A baseline that tells its secrets on /server_info and in its log, and four arms that tell them
    elsewhere."""
    manifest: dict[str, Any] = yaml.safe_load((EXAMPLES / "benchmark-only.yaml").read_text())
    spec = manifest["spec"]
    spec["engine"] |= {
        "env": [{"name": "DATABASE", "valueFrom": {"secretKeyRef": {"name": "database", "key": "url"}}}],
        "apiKeySecretRef": {"name": "keys", "key": "api"},
        "adminKeySecretRef": {"name": "keys", "key": "admin"},
    }
    draft = next(arm["draft"] for arm in spec["arms"] if "draft" in arm)
    chains = [
        {"name": name, "draft": draft, "tree": {"numSteps": steps, "topK": 1, "numDraftTokens": steps + 1}}
        for name, steps in WAYS.items()
    ]
    spec["arms"] = [{"name": "baseline"}, *chains]
    load = {"source": "builtin://code", "concurrency": 1, "requests": 5, "maxTokens": 8}
    spec["workloads"] = [{"name": "code", **load}]
    spec["gate"] = {**spec.get("gate", {}), "decideAfterRounds": [2]}
    file = directory / "question.yaml"
    file.write_text(yaml.safe_dump(manifest))
    return file


def measured(tmp_path: Path) -> str:
    """What is printed of one measurement."""
    there = models(tmp_path / "models")
    for folder in ("qwen/Qwen3-8B",):
        for name, content in tokenizer.files().items():
            (there / folder / name).write_bytes(content)
    program = [sys.executable, "-m", "paceline.cli", "measure", str(question(tmp_path)), "--models", str(there)]
    command = f"{sys.executable} -m {leaking_server.__name__}"
    variables = [word for name, value in KNOWN.items() for word in ("--env", f"{name}={value}")]
    done = subprocess.run(
        [*program, "-o", str(tmp_path / "kept" / "run.yaml"), "--engine-command", command, *variables],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=200,
        check=False,
    )
    return done.stdout


def test_no_secret_of_a_server_is_in_what_is_kept_of_it(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    printed = measured(tmp_path)
    run = the_run(tmp_path / "kept")
    (first, *_) = run["rounds"]
    errors = {one["arm"]: one.get("error", "") for one in first["replicates"]}
    assert errors["dies"].startswith("ValueError: cannot reach the database: *** *** *** *** *** db_password='***'")
    assert errors["names"].startswith("the server serves *** *** *** ***")
    client = (tmp_path / "kept" / "run.d" / "round-0-0" / "client.log").read_text()
    assert "xxx***\n" in client, "of a refusal that is cut within a key"
    assert any("*** *** *** ***" in note for note in first["notes"]), first["notes"]
    places = {path: content(path) for path in (tmp_path / "kept").rglob("*") if path.is_file() and not _own(path)}
    assert {"run.yaml", "report.html", "client.log"} <= {path.name for path in places}
    assert any(path.suffix == ".gz" for path in places)
    for where, text in {"printed": printed, **places}.items():
        found = [name for name, secret in (KNOWN | UNKNOWN).items() if secret[:PART] in text or secret[-PART:] in text]
        assert found == [], where


def _own(path: Path) -> bool:
    """A server's own log, which is its container's."""
    return path.match("arm-*.log") or path.match("ctl/out/*/log")


def content(path: Path) -> str:
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return raw.decode(errors="replace")
