"""No secret of a Deployment is printed, wherever it stands; what cannot do without it is told."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.messages import Says
from tests.support.migration import CASES, Manifest

from paceline.cli import main
from paceline.cli.importing.hidden import masked

TOKEN = "hf_notARealOne12345"
Change = Callable[[Manifest, Manifest], object]


def put(deployment: Manifest, change: Change) -> Manifest:
    """`change` gets the pod and the engine's container."""
    pod = deployment["spec"]["template"]["spec"]
    change(pod, pod["containers"][0])
    return deployment


def imported(tmp_path: Path, change: Change, *options: str) -> int:
    file = tmp_path / "d.yaml"
    file.write_text(yaml.safe_dump(put(CASES[1].deployment, change)))
    return main(["import", str(file), *options])


def beside(kind: str, **fields: Any) -> Change:
    return lambda pod, _: pod.setdefault(kind, []).append({"name": "other", "image": "i", **fields})


def script(text: str) -> Change:
    return lambda _, engine: engine.update(command=["sh", "-c"], args=[text])


@pytest.mark.parametrize(
    ("change", "needed"),
    [
        (beside("initContainers", env=[{"name": "HF_TOKEN", "value": TOKEN}]), ""),
        (beside("containers", env=[{"name": "ADMIN_PASSWORD", "value": "notARealOne"}]), ""),
        (beside("initContainers", command=["hf", "download", "a/b", "--token", "notARealOne"]), ".command[4]"),
        (beside("initContainers", command=["sh", "-c", "hf download a/b --token notARealOne"]), ".command[2]"),
        (beside("containers", args=["--api-key=notARealOne"]), ".args[0]"),
        (script(f"hf auth login --token {TOKEN} && vllm serve a/b"), ""),
        (script("curl -H 'Authorization: Bearer notARealOne' x && vllm serve a/b"), ""),
        (script("pip install git+https://me:notARealOne@x/y && vllm serve a/b"), ""),
        (script(f"env HF_TOKEN={TOKEN} vllm serve a/b"), ""),
        (script("""vllm serve a/b --model-loader-extra-config '{"secret_access_key": "notARealOne"}'"""), ".args[1]"),
        (lambda _, engine: engine.update(env=[{"name": "PROXY", "value": "http://me:notARealOne@proxy"}]), ""),
        (lambda _, engine: engine.update(env=[{"name": "DB_PASS", "value": "notARealOne"}]), ""),
        (lambda _, engine: engine.update(livenessProbe={"httpGet": {"httpHeaders": [{"name": "Authorization",
         "value": "Bearer notARealOne"}]}}), ""),
    ],
)  # fmt: skip
def test_it_is_not_printed(
    change: Change, needed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    code = imported(tmp_path, change)
    said = capsys.readouterr()
    assert "otARealOne" not in said.out + said.err
    assert (code, needed in said.err) == (int(bool(needed)), True)
    says(*said.err.splitlines())


@pytest.mark.parametrize(
    "keys", ["--api-key sk-notARealOne --api-key sk-notARealOne2", "--api-key notARealOne notARealOne"]
)
def test_of_several_keys_none_is_printed(keys: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(tmp_path, script(f"vllm serve a/b {keys}"), "--api-key-secret=clients/key") == 0
    said = capsys.readouterr().out
    assert "otARealOne" not in said
    assert "\n# * --api-key" in said


def test_a_key_in_a_variable_does_not_leave_the_server_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def key(_: Manifest, engine: Manifest) -> None:
        engine["env"] = [{"name": "VLLM_API_KEY", "value": "notARealOne"}]

    assert imported(tmp_path, key) == 1
    said = capsys.readouterr()
    assert "spec.engine.apiKeySecretRef: VLLM_API_KEY … " in said.err
    assert "notARealOne" not in said.out + said.err
    assert imported(tmp_path, key, "--api-key-secret=clients/key") == 0


@pytest.mark.parametrize(
    "text",
    [
        "--api-key $(API_KEY)", "--api-key=$KEY", "Bearer ${TOKEN}", "--tls-key /certs/tls.key",
        "--allow-credentials --x", "--max-num-batched-tokens 8192",
    ],
)  # fmt: skip
def test_what_is_no_secret_stays(text: str) -> None:
    assert masked(text) == text


def test_a_long_text_takes_no_minute() -> None:
    """More than the API server takes."""
    text = "key" + "x" * 20_000
    assert (masked(text), masked("x" * 2_000_000)) == (text, "x" * 2_000_000)


@pytest.mark.parametrize(
    "words",
    [
        "curl -u admin:notARealOne https://registry/x -o /x",
        "aws configure set aws_secret_access_key notARealOne",
        "wandb login 0notARealOne0",
        "echo notARealOne | docker login --password-stdin -u me registry",
        "curl -H 'Authorization: Bearer notARealOne' https://x",
        f"hf auth login --token {TOKEN}",
    ],
)
@pytest.mark.parametrize("joined", ["; ", " && ", "\n"])
def test_of_other_programs_of_a_script_only_the_names_are_printed(
    words: str, joined: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert imported(tmp_path, script(f"{words}{joined}vllm serve a/b")) == 0
    said = capsys.readouterr()
    assert "otARealOne" not in said.out + said.err
    assert f" {words.split()[0]}: " in said.out


@pytest.mark.parametrize("words", ["notARealOne() { x; }; vllm serve a/b", "vllm serve a/b --x ${X:=notARealOne}"])
def test_a_refusal_has_no_words_of_the_script(words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(tmp_path, script(words)) == 1
    said = capsys.readouterr()
    assert "otARealOne" not in said.out + said.err


def test_commands_that_are_left_out_are_not_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = {"exec": {"command": ["curl", "-u", "me:notARealOne", "localhost"]}}
    assert imported(tmp_path, lambda _, engine: engine.update(lifecycle={"preStop": run}, readinessProbe=run)) == 0
    said = capsys.readouterr().out
    assert "otARealOne" not in said
    assert ("lifecycle.preStop: " in said, '"exec": "…"' in said) == (True, True)


def test_a_question_has_no_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--model", "a/b", "--api-key notARealOne"]
    assert imported(tmp_path, lambda _, engine: engine.update(command=["vllm", "serve"], args=words)) == 1
    said = capsys.readouterr()
    assert "otARealOne" not in said.out + said.err
    assert ("args[2] " in said.err, "--api-key-secret NAME/KEY" in said.err) == (True, True)
