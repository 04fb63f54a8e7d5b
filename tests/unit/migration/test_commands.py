"""How people start an engine in a container, and what is read of it."""

from typing import Any

import pytest
from tests.support.messages import Says

from paceline.cli.importing.arguments import carried_arguments
from paceline.cli.importing.command import launch
from paceline.engines.importing import UnansweredError


def container(command: list[str], *args: str, image: str = "", **env: Any) -> dict[str, Any]:
    variables = [{"name": name, **(one if isinstance(one, dict) else {"value": one})} for name, one in env.items()]
    return {"name": "c", "image": image, "command": command, "args": list(args), "env": variables}


SECRET = {"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
MODEL = ("--model-path", "Qwen/Qwen3-8B")


@pytest.mark.parametrize(
    ("given", "engine", "args"),
    [
        (container(["python3", "-m", "sglang.launch_server", *MODEL]), "SGLang", MODEL),
        (container(["/usr/bin/python3.11", "-u", "-m", "sglang.launch_server"], *MODEL), "SGLang", MODEL),
        (container([], "python3", "-m", "sglang.launch_server", *MODEL), "SGLang", MODEL),
        (container(["sglang", "serve"], *MODEL), "SGLang", MODEL),
        (container(["python", "-m", "sgl_jax.launch_server"], *MODEL), "SGLangJAX", MODEL),
        (container(["vllm", "serve", "a/b"], "-tp", "2"), "vLLM", ("a/b", "-tp", "2")),
        (container(["/opt/venv/bin/vllm", "serve"], "a/b"), "vLLM", ("a/b",)),
        (container(["python3", "-m", "vllm.entrypoints.openai.api_server"], "--model=a/b"), "vLLM", ("--model=a/b",)),
        (container([], "--model", "a/b", image="vllm/vllm-openai:v0.33.0"), "vLLM", ("--model", "a/b")),
        (container(["sh", "-c", "exec vllm serve a/b --dtype 'bfloat16'"]), "vLLM", ("a/b", "--dtype", "bfloat16")),
        (container(["vllm", "serve", "$(M)"], M="a/b"), "vLLM", ("a/b",)),
        (container(["vllm", "serve", "a/b", "--api-key", "$(K)"], K=SECRET), "vLLM", ("a/b", "--api-key", "$(K)")),
        (container(["tini", "--", "vllm", "serve", "a/b"]), "vLLM", ("a/b",)),
        (container(["bash", "-euo", "pipefail", "-c"], "vllm serve a/b"), "vLLM", ("a/b",)),
        (container(["tini", "-g", "--", "bash", "-c", "vllm serve a/b"]), "vLLM", ("a/b",)),
        (
            container(["sh", "-c", "vllm serve a/b --chat-template ${T} --dtype auto"], T=SECRET),
            "vLLM",
            ("a/b", "--chat-template", "$(T)", "--dtype", "auto"),
        ),
        (container(["vllm", "serve", "$(M)"], N="a", M="$(N)/b"), "vLLM", ("a/b",)),
    ],
)
def test_the_words_of_the_engine(given: dict[str, Any], engine: str, args: tuple[str, ...]) -> None:
    found = launch(given)
    assert found is not None
    assert (found.engine, found.args) == (engine, args)


@pytest.mark.parametrize(
    "given",
    [
        container(["nginx"]),
        container([]),
        container(["python3", "app.py"]),
        container(["python3", "-m", "vllm.entrypoints.api_server"]),
        container(["/run.sh"], image="vllm/vllm-openai:v0.33.0"),
        container(["sh", "-c", "/run.sh"]),
        container(["sh", "-c", "echo 'cannot be read"]),
    ],
)
def test_a_container_that_starts_none(given: dict[str, Any]) -> None:
    assert launch(given) is None


def test_what_else_a_script_does_is_told_by_the_names_of_the_programs(says: Says) -> None:
    script = "set -e\n# first\npip install x\nA=1 numactl -N 0 vllm serve a/b | tee log && curl localhost"
    found = launch(container(["bash", "-c", script]))
    assert found is not None
    assert (found.args, found.env) == (("a/b",), {"A": "1"})
    says(*(note.text for note in found.notes))


def test_a_variable_whose_value_only_a_shell_knows_is_told_and_left_out() -> None:
    script = "export P=/lib:$P T=$S Q=$X\nvllm serve a/b"
    found = launch(container(["sh", "-c", script], S=SECRET, X="1"))
    assert found is not None
    assert found.env == {"T": "$(S)", "Q": "1"}
    assert [note.path for note in found.notes] == ["containers[c].command P"]


def test_variables_that_the_engine_does_not_get_are_not_carried_over() -> None:
    """Those that a script sets without `export`, but for the container's own."""
    found = launch(container(["sh", "-c", "A=1\nB=2\nX=3\nexport B\nvllm serve a/b"], X="1"))
    assert found is not None
    assert found.env == {"B": "2", "X": "3"}


def test_env_before_the_engine_sets_variables() -> None:
    found = launch(container(["/usr/bin/env", "A=1", "nohup", "vllm", "serve", "a/b"]))
    assert found is not None
    assert (found.args, found.env) == (("a/b",), {"A": "1"})
    assert [note.text.partition(" ")[0] for note in found.notes] == ["nohup"]


@pytest.mark.parametrize(
    ("words", "downloads"),
    [
        ("hf download Q/R --local-dir /m/q", {"/m/q": ("hf://Q/R", "")}),
        ("huggingface-cli download --local-dir=/m/q/ Q/R --revision v1", {"/m/q": ("hf://Q/R", "v1")}),
        ("hf download Q/R --local-dir /m/q --token notARealOne --quiet", {"/m/q": ("hf://Q/R", "")}),
        ("hf download Q/R config.json --local-dir /m/q", {}),
        ("hf download Q/R --local-dir /m/q --include *.json", {}),
        ("hf download Q/R --local-dir /m/q --repo-type dataset", {}),
        ("hf download Q/R", {}),
    ],
)
def test_a_download_of_a_whole_model(words: str, downloads: Any, says: Says) -> None:
    found = launch(container(["sh", "-c", f"{words} && vllm serve /m/q"]))
    assert found is not None
    assert found.downloads == downloads
    (note,) = found.notes
    assert "notARealOne" not in note.text
    says(note.text)


def test_a_script_that_cannot_be_read_is_asked_about() -> None:
    with pytest.raises(UnansweredError, match="paceline import pod/NAME"):
        launch(container(["sh", "-c", "vllm serve 'a/b"]))


def test_the_words_of_a_shell_are_no_list_of_its_own() -> None:
    """What `"$@"` stands for."""
    with pytest.raises(UnansweredError, match=r"`\$@`"):
        launch(container(["sh", "-c", 'exec "$@"', "--"], "vllm", "serve", "a/b"))


def test_a_short_flag_is_written_in_full_and_of_two_the_last_counts(says: Says) -> None:
    found = carried_arguments(
        "SGLang", "0.5.23", [*MODEL, "--tp", "4", "--mem-fraction-s", "0.7", "--mem-fraction-static=0.8"]
    )
    assert (found.tensor_parallel, found.args) == (4, (("--mem-fraction-static=0.8",),))
    assert [note.path for note in found.notes] == ["--mem-fraction-static 0.7"]
    says(*found.notes)


def test_a_server_over_several_nodes_is_refused(says: Says) -> None:
    (question,) = carried_arguments("SGLang", "0.5.23", [*MODEL, "--nnodes", "2", "--node-rank", "0"]).questions
    assert "spec.accelerator.nodes" in question
    says(question)


@pytest.mark.parametrize(
    ("given", "args", "told_of"),
    [
        (
            "--dp 2 --enable-dp-attention --dtype auto",
            (("--attn-dp-size", "2"), ("--dtype", "auto")),
            ["--enable-dp-attention", "--dp-size"],
        ),
        ("--cuda-graph-max-bs=64", (("--cuda-graph-max-bs-decode", "64"),), ["--cuda-graph-max-bs"]),
        (
            "--disable-cuda-graph",
            (("--cuda-graph-backend-decode=disabled",), ("--cuda-graph-backend-prefill=disabled",)),
            ["--disable-cuda-graph"],
        ),
        (
            "--mamba-scheduler-strategy extra_buffer",
            (("--mamba-radix-cache-strategy", "extra_buffer"),),
            ["--mamba-scheduler-strategy"],
        ),
        ("--enable-dp-attention", (("--enable-dp-attention",),), []),
        ("--enable-ep-moe", (("--enable-ep-moe",),), []),
    ],
)
def test_a_flag_has_the_name_of_this_release(given: str, args: Any, told_of: list[str]) -> None:
    """Where the tables have one that says the same; `paceline validate` refuses the others."""
    found = carried_arguments("SGLang", "0.5.23", [*MODEL, *given.split()])
    assert found.args == args
    assert [note.path for note in found.notes] == told_of


def test_words_that_a_variable_may_hold_are_asked_for(says: Says) -> None:
    (question,) = carried_arguments("SGLang", "0.5.23", [*MODEL, "$(EXTRA)"]).questions
    assert "$(EXTRA)" in question
    says(question)
