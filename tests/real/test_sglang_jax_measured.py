"""`paceline measure` with the real sglang-jax 0.1.0rc0 on a CPU: a head of noise is found out in one round."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.real.measured import ROOT, environ
from tests.real.staged import staged
from tests.real.without_cluster import Told, measure, told


@pytest.fixture(scope="module")
def jax(tmp_path_factory: pytest.TempPathFactory, tell: Callable[[Told], Told]) -> Told:
    directory, place = Path(os.environ["SGLANG_JAX_DIR"]), tmp_path_factory.mktemp("measured")
    environment = {
        **environ(place),
        "JAX_PLATFORMS": "cpu",
        "SGL_JAX_CPU_CONTEXT": "512",
        "JAX_COMPILATION_CACHE_DIR": str(directory / "jit_cache"),
    }
    command = f"{directory / 'venv/bin/python'} -u -m sgl_jax.launch_server"
    folder = staged(directory / "models", place)
    measured = measure(ROOT / "dev/sglang-jax/tiny.yaml", folder, place, command, environment)
    return tell(told(place, measured, ROOT / "docs/reports/sglang-jax.md"))


def test_the_real_server_was_measured(jax: Told) -> None:
    assert jax.status["engineVersion"] == "0.1.0rc0"
    assert not jax.status.get("emulated")


def test_every_point_is_evidence(jax: Told) -> None:
    assert [(one["arm"], one["why"]) for one in jax.points] == [("baseline", ""), ("noise", "")]


def test_a_head_of_noise_is_rejected_after_one_round(jax: Told) -> None:
    assert (jax.code, jax.verdict["outcome"], jax.verdict["reason"]) == (10, "Reject", "NothingAccepted")
    for point in jax.of("noise"):
        assert float(point["acceptLength"]) == pytest.approx(1.0, abs=0.01)


def test_no_answer_parts_from_the_baselines_by_more_than_rounding(jax: Told) -> None:
    """The baseline is asked for logprobs, and answers them in the form that is read."""
    (one,) = jax.replicates("noise")
    assert not one["parity"].get("unknown"), one["parity"]
    assert one["parity"]["diverged"] == 0
