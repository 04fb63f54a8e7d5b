"""Are two servers with a tree each, to which prompts are sent by their class, faster than two servers with one tree?
`paceline measure` answers it on the emulator, in real time, for a mix in which routing wins and one in which it loses.

Every arm is two servers at one address (`two_servers`). Those of `incumbent` have the one tree that is the best for
both mixes, the wide one; with a maxSlowdown of 0 only what is faster takes its place. docs/gate.md has the figures.
"""

import json
import random
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import example, two_servers
from tests.unit.measure.test_models import put
from tests.unit.measure.test_story import QUICK, the_run

from paceline.pods import datasets
from paceline_emulator.hub.models import QWEN3_CODER_NEXT, QWEN3_CODER_NEXT_EAGLE3

BY_CLASS = yaml.safe_load((example.FILE.parent / "by-class.yaml").read_text())["spec"]
COMMIT = "1" * 40
CONCURRENCY = 64
"""A server of two then has 32 requests, as in the published tables."""
REQUESTS, TOKENS = 5 * CONCURRENCY, 64
PATIENCE = 550.0
"""Seconds of four rounds on a machine that does much else; on a quiet one they take some 160."""
VARIABLES = (
    *QUICK,
    "PACELINE_EMULATE_VERSION=0.5.6",
    "PACELINE_EMULATE_SPEED=1.5",
    "SGL_FORCE_SHUTDOWN=true",
    "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION=false",
)
"""Half as fast again as published, and ready at once."""


def arms() -> dict[str, dict[str, Any]]:
    draft = {**BY_CLASS["draft"], "commit": COMMIT}
    wide, narrow = ({"draft": draft, "tree": candidate["tree"]} for candidate in BY_CLASS["candidates"])
    engine = {name: BY_CLASS["engine"][name] for name in ("type", "version", "image")}
    own = {**engine, "env": [{"name": two_servers.SECOND_TREE, "value": "5,1,6"}]}
    return {"baseline": {}, "narrow": narrow, "routed": {**wide, "engine": own}, "incumbent": wide}


def question(names: str) -> dict[str, Any]:
    """Does one of these arms take the place of the last one, whatever becomes of the time to the first token?"""
    workload = {"concurrency": CONCURRENCY, "requests": REQUESTS, "maxTokens": TOKENS}
    spec = {
        "pool": "mixed",
        "target": {**BY_CLASS["target"], "servedName": "next", "commit": COMMIT},
        "engine": {**BY_CLASS["engine"], "env": [{"name": "SGLANG_ENABLE_SPEC_V2", "value": "0"}]},
        "accelerator": BY_CLASS["accelerator"],
        "cache": {"claimName": "models"},
        "arms": [{"name": name, **arms()[name]} for name in names.split()],
        "workloads": [{"name": "mixed", "source": "configMap://prompts/mixed.jsonl", **workload}],
        "gate": {
            "minImprovement": "0%",
            "maxSlowdown": "0%",
            "confidence": "95%",
            "decideAfterRounds": [4],
            "limits": [{"metric": "meanTTFT", "maxIncrease": "999%"}],
            "parity": {"samples": 1, "maxTokens": 1},
        },
    }
    return {"apiVersion": "paceline.dev/v1alpha1", "kind": "BenchmarkRun", "metadata": {"name": "mixed"}, "spec": spec}


def prompts(chat: float) -> str:
    """Those of one round, of which this share is chat: every round sends the same."""
    shares = {"chat": round(chat * REQUESTS), "terminal": round((1 - chat) * REQUESTS)}
    texts = [text for name, number in shares.items() for text in datasets.load_dataset(name)[:number]]
    random.Random(1).shuffle(texts)
    return "".join(json.dumps({"prompt": text}) + "\n" for text in texts)


def models(directory: Path) -> Path:
    """As far as an emulated server reads them."""
    for model, config in ((BY_CLASS["target"], QWEN3_CODER_NEXT), (BY_CLASS["draft"], QWEN3_CODER_NEXT_EAGLE3)):
        put(directory / model["source"].removeprefix("hf://"))
        (directory / model["source"].removeprefix("hf://") / "config.json").write_text(json.dumps(config))
    return directory


def measured(directory: Path, chat: float, names: str) -> dict[str, Any]:
    """The status of the run; its arms by name in `armVerdicts`."""
    (directory / "mixed.jsonl").write_text(prompts(chat))
    (directory / "question.yaml").write_text(yaml.safe_dump(question(names)))
    options = {
        "--models": models(directory / "models"),
        "--prompts": f"mixed={directory / 'mixed.jsonl'}",
        "--engine-command": shlex.join([sys.executable, "-P", two_servers.__file__]),
        "-o": directory / "run.yaml",
    }
    words = [*options.items(), *(("--env", variable) for variable in VARIABLES)]
    program = [sys.executable, "-m", "paceline.cli", "measure", str(directory / "question.yaml")]
    done = subprocess.run(
        [*program, *(str(word) for pair in words for word in pair)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode in (0, 10, 11), done.stdout + done.stderr
    status: dict[str, Any] = the_run(directory)["status"]
    return {**status, "armVerdicts": {one["arm"]: one for one in status["armVerdicts"]}}


def beside_incumbent(status: dict[str, Any], arm: str) -> tuple[float, float, float]:
    """Lower bound, ratio, upper bound."""
    found = status["armVerdicts"][arm]["incumbent"]
    return float(found["lower"]), float(found["ratio"]), float(found["upper"])


@pytest.mark.timeout(600)
def test_where_both_servers_are_busy_routing_beats_the_best_tree(tmp_path: Path) -> None:
    status = measured(tmp_path, 0.45, "baseline narrow routed incumbent")
    assert (status["verdict"]["outcome"], status["verdict"]["winner"]) == ("Promote", "routed"), status
    lower, _, _ = beside_incumbent(status, "routed")
    assert lower > max(1, *(beside_incumbent(status, arm)[1] for arm in ("baseline", "narrow"))), status
    assert status["emulated"]


@pytest.mark.timeout(600)
def test_where_nearly_all_prompts_are_of_one_class_routing_loses_to_its_tree(tmp_path: Path) -> None:
    """The other server has next to nothing to do."""
    status = measured(tmp_path, 0.9, "baseline routed incumbent")
    assert status["verdict"]["outcome"] == "Reject", status
    assert status["armVerdicts"]["routed"]["reason"].startswith("SlowerThanIncumbent"), status
    assert beside_incumbent(status, "routed")[2] < 1
