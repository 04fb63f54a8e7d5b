"""One round of the real sglang-jax 0.1.0rc0 on a CPU: what is read of it agrees with what its clients received."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.real.measured import ROOT, Engine, Measured, environ, measure, own
from tests.real.staged import staged
from tests.support.jax_servers import BASELINE, JAX, server

from paceline.core import Arm, Draft, Model, Tree

TARGET = Model(source="hf://paceline/tiny-llama", commit="1" * 40)
HEAD = Model(source="hf://paceline/random-eagle3", commit="2" * 40)
EAGLE3 = Arm(
    name="eagle3",
    draft=Draft(algorithm="EAGLE3", model=HEAD),
    tree=Tree(num_steps=3, top_k=1, num_draft_tokens=4),
)
ARGS = (
    "--page-size=64", "--device=cpu", "--max-total-tokens=8192", "--mem-fraction-static=0.3",
    "--max-running-requests=4", "--context-length=512", "--chunked-prefill-size=64", "--max-prefill-tokens=64",
    "--precompile-token-paddings=64", "--precompile-bs-paddings", "1", "4",
)  # fmt: skip
ONE, FOUR, CHATS = own(1, 2, 8), own(4, 4, 8), own(1, 2, 6, "chats")
WORKLOADS = (ONE, FOUR, CHATS)


def engine(directory: Path, programs: Path) -> Engine:
    python = str(directory / "venv" / "bin" / "python")
    return Engine(
        type="SGLangJAX",
        version="0.1.0",
        server=replace(
            server(*ARGS, count=1, tensor_parallel_size=1, topology="1x1"), target=TARGET, served_name="tiny-llama"
        ),
        arms=(BASELINE, EAGLE3),
        folder=staged(directory / "models", programs),
        models={TARGET.source: "target", HEAD.source: "eagle3"},
        command=lambda arm, argv: ("env", f"SGL_JAX_CPU_SHIM={int(arm.draft is not None)}", python, *argv[1:]),
        environment={
            **environ(programs),
            "JAX_PLATFORMS": "cpu",
            "SGL_JAX_CPU_CONTEXT": "512",
            "JAX_COMPILATION_CACHE_DIR": str(directory / "jit_cache"),
        },
        workloads=WORKLOADS,
    )


@pytest.fixture(scope="module")
def jax(tmp_path_factory: pytest.TempPathFactory, tell: Callable[[Measured], Measured]) -> Measured:
    programs, directory = tmp_path_factory.mktemp("programs"), tmp_path_factory.mktemp("round")
    found = engine(Path(os.environ["SGLANG_JAX_DIR"]), programs)
    return tell(measure(found, directory, ROOT / "docs" / "reports" / "sglang-jax.md", "A round"))


def test_the_real_server_was_measured(jax: Measured) -> None:
    assert (jax.outcome.result.engine_version, jax.outcome.result.emulated) == ("0.1.0rc0", False)


def test_every_point_is_evidence(jax: Measured) -> None:
    assert {key: one.why for key, one in jax.outcome.judged.items() if not one.valid} == {}
    assert len(jax.outcome.judged) == 2 * len(WORKLOADS)


def test_both_arms_resolved_alike_but_for_their_speculation(jax: Measured) -> None:
    for name in JAX.compared:
        assert len({repr(jax.resolved(arm)[name]) for arm in ("baseline", "eagle3")}) == 1, name
    assert [jax.resolved(arm)["speculative_algorithm"] for arm in ("baseline", "eagle3")] == [None, "EAGLE3"]


@pytest.mark.parametrize("workload", [one.name for one in WORKLOADS])
def test_a_random_head_accepts_nothing_and_every_token_is_a_verify_call(jax: Measured, workload: str) -> None:
    """All but the first of a request; of requests that end behind a prefill, one too many (the probe says why)."""
    point = jax.point("eagle3", workload)
    assert point.output_tokens is not None
    assert point.verify_calls is not None
    assert point.accept_length == pytest.approx(1.0, abs=0.01)
    assert 0 <= point.verify_calls - (point.output_tokens - point.completed) <= point.completed


def test_the_baseline_speculates_about_nothing(jax: Measured) -> None:
    for workload in WORKLOADS:
        point = jax.point("baseline", workload.name)
        assert (point.accept_length, point.verify_calls, point.retractions) == (None, None, 0)
