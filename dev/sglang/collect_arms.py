"""collect_arms.py DIR: what examples start, for resolve.py: DIR/asked.json and, below DIR/models, every config.json.

Every arm of every deployment of SGLang 0.5.23 in examples/ and in the file of all shapes, rendered as it is measured.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from paceline import api
from paceline.core import DeploymentSpec, Model
from paceline.core.names import snapshot_path
from paceline.engines import ENGINES
from paceline.plan.deployment.models import artifacts_of, models_of, pin
from paceline_emulator.hub.models import generated
from paceline_emulator.hub.published import TARGETS

REPOSITORY = Path(__file__).parents[2]
FILES = (*sorted((REPOSITORY / "examples").glob("*.yaml")), REPOSITORY / "tests/unit/engines/sglang/shapes.yaml")
VERSION = "0.5.23"

SMALL = {**TARGETS["Qwen/Qwen3-8B"], "num_hidden_layers": 4}
BLOCK = {
    **SMALL,
    "block_size": 16,
    "num_target_layers": 36,
    "dflash_config": {"target_layer_ids": [1, 17, 33], "mask_token_id": 151669},
}
INVENTED: dict[str, dict[str, Any]] = {
    "paceline-test/eagle": {**SMALL, "architectures": ["Qwen2ForCausalLMEagle"], "model_type": "qwen2"},
    "paceline-test/small": SMALL,
    "paceline-test/dflash": {**BLOCK, "architectures": ["DFlashDraftModel"]},
    "paceline-test/dspark": {
        **BLOCK,
        "architectures": ["Qwen3DSparkModel"],
        "block_size": 5,
        "markov_rank": 64,
        "markov_head_type": "vanilla",
        "target_layer_ids": [1, 17, 33],
        "mask_token_id": 151669,
    },
}


def deployments() -> Iterator[tuple[str, DeploymentSpec]]:
    for file in FILES:
        for document in yaml.safe_load_all(file.read_text()):
            if isinstance(document, dict) and document.get("kind") == "SpeculativeDeployment":
                yield file.stem, api.deployment(document)


def config(model: Model) -> dict[str, Any]:
    """Of a repository, or of a directory on a claim by its last name; without the Python code that it may name."""
    latest = {name: one.history[-1].files for name, one in generated().items()}
    published = {n: json.loads(files["config.json"].content) for n, files in latest.items() if "config.json" in files}
    name = model.source.split("://", 1)[1]
    known = {**published, **INVENTED}
    found = known.get(name) or next(one for key, one in known.items() if name.endswith("/" + key.split("/")[1]))
    return {key: value for key, value in found.items() if key != "auto_map"}


def main(to: Path) -> None:
    asked = []
    for name, spec in deployments():
        engine = spec.server.engine
        if engine.type != "SGLang" or engine.version != VERSION:
            print(f"{name}: left out, {engine.type} {engine.version}")
            continue
        known = pin(spec, {(one.source, one.revision): "0" * 40 for one in artifacts_of(spec)})
        for model in models_of(known):
            at = to / snapshot_path(model.source, "0" * 40).lstrip("/")
            at.mkdir(parents=True, exist_ok=True)
            (at / "config.json").write_text(json.dumps(config(model)))
        adapter = ENGINES[engine.type]
        for pool in known.pools:
            asked += [
                {
                    "name": f"{name} {pool.name} {arm.name}",
                    "product": spec.server.accelerator.product,
                    "env": {one["name"]: one["value"] for one in engine.env if "value" in one},
                    "argv": adapter.argv(known.server, arm),
                    "files": dict(adapter.files(arm)),
                    "expected": dict(adapter.expected(known.server, arm)),
                    "compared": adapter.compared,
                }
                for arm in pool.arms
            ]
    (to / "asked.json").write_text(json.dumps(asked, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
