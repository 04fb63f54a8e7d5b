"""How people start an engine in a container, and what is read of it."""

from typing import Any

import pytest

from paceline.cli.importing.arguments import told
from paceline.cli.importing.command import launch
from paceline.cli.importing.note import UnansweredError


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
        (container(["vllm", "serve", "a/b"], "-tp", "2"), "VLLM", ("a/b", "-tp", "2")),
        (container(["/opt/venv/bin/vllm", "serve"], "a/b"), "VLLM", ("a/b",)),
        (container(["python3", "-m", "vllm.entrypoints.openai.api_server"], "--model=a/b"), "VLLM", ("--model=a/b",)),
        (container([], "--model", "a/b", image="vllm/vllm-openai:v0.33.0"), "VLLM", ("--model", "a/b")),
        (container(["sh", "-c", "exec vllm serve a/b --dtype 'bfloat16'"]), "VLLM", ("a/b", "--dtype", "bfloat16")),
        (container(["bash", "-lc"], "sglang serve \\\n  --model-path $M"), "SGLang", ("--model-path", "$(M)")),
        (container(["bash", "-c"], "sglang serve --model-path $M", M="a/b"), "SGLang", ("--model-path", "a/b")),
        (container(["bash", "-c"], "export M=a/b\nvllm serve ${M}"), "VLLM", ("a/b",)),
        (container(["bash", "-c"], "M=a/b; vllm serve $M > log 2>&1"), "VLLM", ("a/b",)),
        (container(["sh", "-c"], "vllm serve a/b --port ${PORT:-80} | tee x"), "VLLM", ("a/b", "--port", "80")),
        (container(["vllm", "serve", "$(M)"], M="a/b"), "VLLM", ("a/b",)),
        (container(["vllm", "serve", "a/b", "--api-key", "$(K)"], K=SECRET), "VLLM", ("a/b", "--api-key", "$(K)")),
        (container(["tini", "--", "vllm", "serve", "a/b"]), "VLLM", ("a/b",)),
        (
            container(["sh", "-c", """vllm serve a/b --speculative-config '{"method": "ngram"}'"""]),
            "VLLM",
            ("a/b", "--speculative-config", '{"method": "ngram"}'),
        ),
        (container(["bash", "-euo", "pipefail", "-c"], "vllm serve a/b"), "VLLM", ("a/b",)),
        (container(["tini", "-g", "--", "bash", "-c", "vllm serve a/b"]), "VLLM", ("a/b",)),
        (
            container(["sh", "-c", 'exec vllm serve a/b "$@"', "--"], "--dtype", "auto"),
            "VLLM",
            ("a/b", "--dtype", "auto"),
        ),
        (container(["sh", "-c", 'exec "$@"', "--"], "vllm", "serve", "a/b"), "VLLM", ("a/b",)),
        (
            container(["sh", "-c", "vllm serve a/b $X"], X="-tp 2 --dtype auto"),
            "VLLM",
            ("a/b", "-tp", "2", "--dtype", "auto"),
        ),
        (container(["sh", "-c", 'vllm serve "$X"'], X="a b"), "VLLM", ("a b",)),
        (container(["sh", "-c", "vllm serve a/b # don't: --enforce-eager"]), "VLLM", ("a/b",)),
        (
            container(["sh", "-c", "vllm serve a/b --chat-template ${T} --dtype auto"], T=SECRET),
            "VLLM",
            ("a/b", "--chat-template", "$(T)", "--dtype", "auto"),
        ),
        (
            container(["sh", "-c", "vllm serve a/b -tp $(nvidia-smi -L | wc -l) --dtype auto"]),
            "VLLM",
            ("a/b", "-tp", "$(nvidia-smi -L | wc -l)", "--dtype", "auto"),
        ),
        (container(["sh", "-c", "N=`nproc`; vllm serve a/b -tp $N"]), "VLLM", ("a/b", "-tp", "$(nproc)")),
        (container(["sh", "-c", "cat <<EOF >t\nisn't\nEOF\nvllm serve a/b"]), "VLLM", ("a/b",)),
        (container(["sh", "-c", "export P=$(hostname)\nvllm serve a/b"]), "VLLM", ("a/b",)),
        (container(["vllm", "serve", "$(M)"], N="a", M="$(N)/b"), "VLLM", ("a/b",)),
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


def test_what_else_a_script_does_is_said() -> None:
    script = "set -e\n# first\npip install x\nA=1 numactl -N 0 vllm serve a/b && curl localhost | tee log"
    found = launch(container(["bash", "-c", script]))
    assert found is not None
    assert (found.args, found.env) == (("a/b",), {"A": "1"})
    said = " ".join(note.text for note in found.notes)
    assert all(f"`{words}`" in said for words in ("pip install x", "numactl -N 0", "curl localhost", "tee log"))
    assert "`set" not in said


def test_what_only_a_shell_knows_is_no_variable() -> None:
    found = launch(container(["sh", "-c", "export P=$(hostname) T=$S\nvllm serve a/b"], S=SECRET))
    assert found is not None
    assert found.env == {"T": "$(S)"}
    assert [note.text for note in found.notes] == ["P=$(hostname) is left out: write what it is in spec.engine.env"]


def test_a_script_that_cannot_be_read_is_asked_about() -> None:
    with pytest.raises(UnansweredError, match="write its words as a list"):
        launch(container(["sh", "-c", "vllm serve 'a/b"]))


def test_a_short_flag_is_written_in_full_and_of_two_the_last_counts() -> None:
    found = told("SGLang", "0.5.23", [*MODEL, "--tp", "4", "--mem-fraction-s", "0.7", "--mem-fraction-static=0.8"])
    assert (found.tensor_parallel, found.args) == (4, (("--mem-fraction-static=0.8",),))
    assert [str(note) for note in found.notes] == [
        "--mem-fraction-static 0.7: is given again later, and the last one counts"
    ]


def test_a_server_over_several_nodes_is_refused() -> None:
    with pytest.raises(UnansweredError, match="no server over several nodes"):
        told("SGLang", "0.5.23", [*MODEL, "--nnodes", "2", "--node-rank", "0"])
