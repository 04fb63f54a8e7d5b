"""Deployments as they stand in guides and repositories of others, that were read wrongly or not at all."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.messages import Says

from paceline.cli import main

Manifest = dict[str, Any]
SGLANG, VLLM = "lmsysorg/sglang:v0.5.23", "vllm/vllm-openai:v0.33.0"
EAGLE3 = "--speculative-algorithm EAGLE3 --speculative-draft-model-path a/head --speculative-num-steps"
CLAIM = {"name": "weights", "persistentVolumeClaim": {"claimName": "weights"}}


def deployment(image: str, *, command: list[str], pod: Manifest | None = None, **engine: Any) -> Manifest:
    container = {"name": "engine", "image": image, "command": command, **engine}
    spec: Manifest = {
        "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H200"},
        "containers": [container],
        **(pod or {}),
    }
    container.setdefault("resources", {"limits": {"nvidia.com/gpu": 1}})
    template = {"metadata": {"labels": {"app": "q"}}, "spec": spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "q"}, "spec": {"template": template}}


class Said:
    """What `paceline import` printed."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.comments = code, [line for line in out.splitlines() if line.startswith("#")]
        self.problems = [line.partition("Deployment q: ")[2] or line for line in err.splitlines()]
        self.spec: Manifest = yaml.safe_load(out)["spec"] if out else {}

    def note(self, path: str) -> str:
        """The one that begins so."""
        (found,) = (line.partition(": ")[2] for line in self.comments if line.startswith(f"# * {path}"))
        return found


@pytest.fixture
def imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(given: Manifest | str, *options: str) -> Said:
        file = tmp_path / "d.yaml"
        file.write_text(given if isinstance(given, str) else yaml.safe_dump(given))
        code = main(["import", str(file), *options])
        return Said(code, *capsys.readouterr())

    return run


def test_a_chain_has_as_many_tokens_as_the_engine_makes_of_it(imported: Any) -> None:
    words = f"--model-path a/b {EAGLE3} 2 --speculative-eagle-topk 1 --speculative-num-draft-tokens 2"
    said = imported(deployment(SGLANG, command=["sglang", "serve"], args=words.split()))
    assert said.code == 0
    assert said.spec["candidates"][0]["tree"] == {"numSteps": 2, "topK": 1, "numDraftTokens": 3}
    assert "numDraftTokens 3" in said.note("--speculative-num-draft-tokens 2")


def test_what_can_be_taken_out_is_taken_out_beside_a_problem(imported: Any) -> None:
    words = f"--model-path a/b --host :: {EAGLE3} 2 --speculative-eagle-topk 2 --speculative-num-draft-tokens 8"
    said = imported(deployment(SGLANG, command=["sglang", "serve"], args=words.split()))
    assert said.code == 1
    assert [problem.partition(": ")[0] for problem in said.problems] == [
        "spec.candidates[0].tree.numDraftTokens",
        "spec.engine.args",  # an attention backend
    ]
    assert "args" not in said.spec["engine"]
    assert said.note("--host ::")


def test_a_target_that_drafts_with_its_own_layers(imported: Any) -> None:
    """What SGLang's pages write for DeepSeek: EAGLE and no draft."""
    words = "--model-path a/b --tp 8 --speculative-algorithm EAGLE --speculative-num-steps 3 --speculative-eagle-topk 1"
    engine = {"args": words.split(), "resources": {"limits": {"nvidia.com/gpu": 8}}}
    said = imported(deployment(SGLANG, command=["python3", "-m", "sglang.launch_server"], **engine))
    assert said.code == 0
    assert said.spec["draft"] == {"algorithm": "MTP"}
    assert sum("--speculative-algorithm EAGLE: is MTP" in line for line in said.comments) == 1


def test_a_strategy_stays_where_the_release_has_it(imported: Any) -> None:
    """sglang#18808; the release refuses to start without it."""
    words = "--model-path a/b --mamba-scheduler-strategy extra_buffer --mem-fraction-static 0.8 "
    words += f"--cuda-graph-max-bs 32 {EAGLE3} 3"
    script = f"SGLANG_ENABLE_SPEC_V2=1 python -m sglang.launch_server {words}"
    said = imported(deployment("lmsysorg/sglang:v0.5.12", command=["bash", "-c"], args=[script]))
    assert said.code == 0
    assert said.spec["engine"]["args"] == [
        *("--mamba-scheduler-strategy", "extra_buffer", "--mem-fraction-static", "0.8", "--cuda-graph-max-bs", "32")
    ]
    assert said.spec["engine"]["env"] == [{"name": "SGLANG_ENABLE_SPEC_V2", "value": "1"}]


def test_a_block_that_is_given_beside_a_flag_that_was_renamed(imported: Any) -> None:
    words = "--model-path a/b --speculative-algorithm DFLASH --speculative-draft-model-path a/head "
    words += "--speculative-num-draft-tokens 16 --attention-backend fa3 --mamba-scheduler-strategy extra_buffer"
    said = imported(deployment(SGLANG, command=["sglang", "serve"], args=words.split()))
    assert said.code == 0
    assert said.spec["candidates"] == [{"name": "current", "blockSize": 16}]
    assert said.spec["engine"]["args"] == [
        *("--attention-backend", "fa3", "--mamba-radix-cache-strategy", "extra_buffer")
    ]
    assert not any("guess" in line and "blockSize" in line for line in said.comments)


@pytest.mark.parametrize(
    ("version", "args"),
    [
        ("0.5.12", ["--dp-size", "2", "--enable-dp-attention", "--cuda-graph-max-bs", "64"]),
        ("0.5.17", ["--dp-size", "2", "--enable-dp-attention", "--cuda-graph-max-bs-decode", "64"]),
        ("0.5.22", ["--attn-dp-size", "2", "--cuda-graph-max-bs-decode", "64"]),
        ("0.9.1", ["--attn-dp-size", "2", "--cuda-graph-max-bs-decode", "64"]),
    ],
)
def test_a_pair_of_flags_stays_one_or_is_renamed_together(imported: Any, version: str, args: list[str]) -> None:
    """Half of it would start two whole replicas on the GPUs of one."""
    words = f"--model-path a/b --tp 8 --dp 2 --enable-dp-attention --cuda-graph-max-bs 64 {EAGLE3} 3"
    engine = {"args": words.split(), "resources": {"limits": {"nvidia.com/gpu": 8}}}
    said = imported(deployment(f"lmsysorg/sglang:v{version}", command=["sglang", "serve"], **engine))
    assert said.spec["engine"]["args"] == args


def test_renamed_flags_are_carried_over(imported: Any) -> None:
    words = f"--model-path a/b --tp 8 --dp 2 --enable-dp-attention --cuda-graph-max-bs 64 {EAGLE3} 3"
    engine = {"args": words.split(), "resources": {"limits": {"nvidia.com/gpu": 8}}}
    said = imported(deployment(SGLANG, command=["sglang", "serve"], **engine))
    assert said.code == 0
    assert said.spec["engine"]["args"] == ["--attn-dp-size", "2", "--cuda-graph-max-bs-decode", "64"]
    assert "--attn-dp-size 2" in said.note("--dp-size")


def test_eagle_without_a_head_is_mtp(imported: Any) -> None:
    """DeepSeek and GLM, as SGLang's own pages and ROCm's write them."""
    words = "--model-path deepseek-ai/DeepSeek-V3 --tp 8 --speculative-algorithm EAGLE --speculative-num-steps 3"
    shape = "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
    for own in ("", " --speculative-draft-model-path deepseek-ai/DeepSeek-V3"):
        said = imported(deployment(
            SGLANG, command=["sglang", "serve"], args=f"{words} {shape}{own}".split(),
            resources={"limits": {"nvidia.com/gpu": 8}},
        ))  # fmt: skip
        assert (said.code, said.spec["draft"]) == (0, {"algorithm": "MTP"})
        assert any("--speculative-algorithm EAGLE: is MTP" in line for line in said.comments)


def test_what_a_release_needs_stays(imported: Any) -> None:
    """Qwen3.5 with NEXTN, whose release does not start without it."""
    words = "--model-path Qwen/Qwen3.5-35B-A3B --mamba-scheduler-strategy extra_buffer --mem-fraction-static 0.8"
    more = "--speculative-algorithm NEXTN --speculative-num-steps 3 --speculative-eagle-topk 1"
    said = imported(deployment("lmsysorg/sglang:v0.5.12", command=["sglang", "serve"], args=f"{words} {more}".split()))
    assert said.code == 0
    assert said.spec["engine"]["args"][:2] == ["--mamba-scheduler-strategy", "extra_buffer"]


def test_a_release_of_vllm_before_the_oldest_is_told(imported: Any, says: Says) -> None:
    words = "--model a/b --speculative-model a/small --num-speculative-tokens 5 --use-v2-block-manager"
    said = imported(deployment("vllm/vllm-openai:v0.6.6", command=["vllm", "serve"], args=words.split()))
    assert said.code == 1
    assert any(problem.startswith("spec.engine.version: ") for problem in said.problems)
    says(*said.problems)


def test_settings_of_the_draft_are_the_candidates(imported: Any) -> None:
    """MiniMax-M3 on Blackwell (vllm/recipes#694)."""
    told = "method eagle3 --speculative-config.model a/head --speculative-config.num_speculative_tokens 3"
    words = f"--speculative-config.{told} --speculative-config.attention_backend FLASH_ATTN".split()
    said = imported(deployment(VLLM, command=["vllm", "serve", "a/b"], args=words))
    assert said.code == 0
    (candidate,) = said.spec["candidates"]
    assert candidate["args"] == ["--speculative-config.attention_backend=FLASH_ATTN"]


def test_vllms_short_cuts_are_its_speculation(imported: Any) -> None:
    """vllm#48787, beside a flag that only begins alike."""
    words = "vllm serve a/glm --specialize-active-lora --spec-model a/glm-speculator.dspark --spec-method dspark"
    words += " --spec-tokens 7 --speculative_config.kv-cache-dtype bfloat16"
    said = imported(deployment(VLLM, command=words.split()))
    assert (said.code, said.spec["engine"]["args"]) == (0, ["--specialize-active-lora"])
    assert said.spec["draft"] == {"algorithm": "DSPARK", "source": "hf://a/glm-speculator.dspark"}
    assert said.spec["candidates"] == [
        {"name": "current", "blockSize": 7, "args": ["--speculative-config.kv_cache_dtype=bfloat16"]}
    ]


def test_a_block_that_is_given_is_no_guess(imported: Any) -> None:
    words = "--model-path a/b --speculative-algorithm DFLASH --speculative-draft-model-path a/head"
    given = f"{words} --speculative-num-draft-tokens 16 --attention-backend fa3".split()
    said = imported(deployment(SGLANG, command=["sglang", "serve"], args=given))
    assert said.spec["candidates"][0]["blockSize"] == 16
    assert not any("candidates" in line and "guess" in line for line in said.comments)


def sidecar(port: int) -> Manifest:
    proxy = {"name": "proxy", "image": "i", "restartPolicy": "Always", "args": [f"--port={port}", "--vllm-port=8200"]}
    return {"initContainers": [proxy]}


def test_a_sidecar_where_the_engine_will_listen_is_refused(imported: Any) -> None:
    words = ["vllm", "serve", "a/b", "--port", "8200"]
    said = imported(deployment(VLLM, command=words, pod=sidecar(8000)))
    assert said.code == 1
    assert [problem.partition(": ")[0] for problem in said.problems] == [
        "spec.engine.podTemplate.spec.initContainers[0].args[0]"
    ]
    assert imported(deployment(VLLM, command=words, pod=sidecar(8080))).code == 0


def test_a_sidecar_stays_one(imported: Any, says: Says) -> None:
    said = imported(deployment(VLLM, command=["vllm", "serve", "a/b"], pod=sidecar(8080)))
    assert said.spec["engine"]["podTemplate"]["spec"]["initContainers"][0]["restartPolicy"] == "Always"
    says(said.note("initContainers[proxy]"))


def test_an_init_container_goes_with_its_only_mount(imported: Any, says: Says) -> None:
    mounts = [{"name": "weights", "mountPath": "/data"}]
    download = {"name": "download", "image": "i", "args": ["hf", "download"], "volumeMounts": mounts}
    other = {"name": "other", "image": "i"}
    pod = {"volumes": [CLAIM], "initContainers": [download, other]}
    said = imported(deployment(VLLM, command=["vllm", "serve", "/data/llama"], pod=pod, volumeMounts=mounts))
    assert said.code == 0
    template = said.spec["engine"]["podTemplate"]["spec"]
    assert ([one["name"] for one in template["initContainers"]], template.get("volumes")) == (["other"], None)
    says(said.note("initContainers[download]"))


def test_every_question_has_an_option_and_all_are_asked_at_once(imported: Any) -> None:
    """The name that clients ask for is in a ConfigMap."""
    name = {"name": "ID", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "id"}}}
    words = ["--model=/gcs/$(ID)", "--served-model-name=$(ID)", "--max-model-len=many"]
    given = deployment("own/engine:latest", command=["vllm", "serve"], args=words, env=[name], resources={})
    given["spec"]["template"]["spec"]["nodeSelector"] = {}
    said = imported(given)
    options = ("--engine-version", "--gpus", "--product", "--target", "--served-name")
    assert [option for option in options if sum(option in problem for problem in said.problems) == 1] == [*options]
    assert len(said.problems) == len(options)
    answers = ["--engine-version=0.33.0", "--gpus=1", "--product=p", "--target=hf://a/b", "--served-name=q"]
    said = imported(given, *answers)
    assert ["--max-model-len" in problem for problem in said.problems] == [True]
    assert said.spec["target"] == {"source": "hf://a/b", "servedName": "q"}


def test_problems_are_told_beside_questions(imported: Any) -> None:
    given = deployment(VLLM, command=["vllm", "serve", "gpt2", "--port", "8200"], pod=sidecar(8000))
    said = imported(given)
    assert ["--target" in said.problems[0], "initContainers[0]" in said.problems[1]] == [True, True]
    assert len(said.problems) == 2


def test_other_kinds_are_named(imported: Any) -> None:
    said = imported({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": "q"}})
    assert said.code == 1
    assert all(part in said.problems[0] for part in ("LeaderWorkerSet", "spec.accelerator.nodes"))


def test_a_helm_template_is_one(imported: Any) -> None:
    said = imported('kind: Deployment\nmetadata:\n  name: {{ include "x.fullname" . }}\n')
    assert said.code == 1
    assert "helm template … | paceline import -" in said.problems[0]


def test_a_flag_and_its_value_in_one_word(imported: Any, says: Says) -> None:
    said = imported(deployment(VLLM, command=["vllm", "serve"], args=["--model a/b", "--max-model-len 8192"]))
    assert said.code == 1
    assert [problem.partition(" ")[0] for problem in said.problems] == ["args[0]", "args[1]"]
    says(*said.problems)


def test_models_that_the_script_downloads(imported: Any) -> None:
    script = (
        'pip install -U "huggingface_hub[cli]" && huggingface-cli download a/b --revision v1 --local-dir /models/q && '
        f"hf download a/head --local-dir /models/e && sglang serve --model-path /models/q {EAGLE3} 3"
    ).replace("--speculative-draft-model-path a/head", "--speculative-draft-model-path /models/e")
    mounts = [{"name": "weights", "mountPath": "/models"}]
    said = imported(deployment(SGLANG, command=["sh", "-c", script], pod={"volumes": [CLAIM]}, volumeMounts=mounts))
    assert said.code == 0
    assert said.spec["target"] == {"source": "hf://a/b", "revision": "v1", "servedName": "/models/q"}
    assert said.spec["draft"] == {"algorithm": "EAGLE3", "source": "hf://a/head"}
    assert said.note("podTemplate.spec.containers[0].volumeMounts[0] (weights, /models)")


def test_memory_at_dev_shm_is_not_told(imported: Any) -> None:
    """Servers have the same."""
    pod = {"volumes": [{"name": "dshm", "emptyDir": {"medium": "Memory"}}]}
    mounts = [{"name": "dshm", "mountPath": "/dev/shm"}]
    said = imported(deployment(VLLM, command=["vllm", "serve", "a/b"], pod=pod, volumeMounts=mounts))
    assert "volumes" not in said.spec["engine"]["podTemplate"].get("spec", {})
    assert not any("shm" in line for line in said.comments)


def test_a_note_is_one_line(imported: Any) -> None:
    said = imported(deployment(VLLM, command=["vllm", "serve", "a/b"]))
    assert all(line == "#" or line.startswith(("# * ", "# Imported", "# Not")) for line in said.comments)
