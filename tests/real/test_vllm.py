"""One round of the real vLLM 0.33.0 on a CPU, with traffic of one's own: what is read of it agrees with what its
clients received, and every kind of request is answered, with speculation as without."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.real.measured import ROOT, Engine, Measured, environ, measure, own
from tests.real.staged import FORM, staged
from tests.support.vllm_server import BASE, server

from paceline.core import Arm, Draft, Model, Ngram, Parity, Tree
from paceline.engines.vllm.arguments import COMPARED
from paceline.evidence import Point

TARGET = Model(source="hf://paceline/tiny-llama", commit="1" * 40)
HEAD = Model(source="hf://paceline/random-eagle3", commit="2" * 40)
NGRAM = Arm(
    name="ngram",
    draft=Draft(algorithm="NGRAM", model=None),
    ngram=Ngram(num_draft_tokens=4, breadth=1, min_match=2, max_match=4),
)
NOISE = Arm(
    name="noise",
    draft=Draft(algorithm="EAGLE3", model=HEAD),
    tree=Tree(num_steps=3, top_k=1, num_draft_tokens=4),
)
ARMS = (BASE, NGRAM, NOISE)
ARGS = (
    "--max-model-len=2048", "--enforce-eager", "--max-num-seqs=8",
    "--enable-auto-tool-choice", "--tool-call-parser=hermes",
    '--structured-outputs-config={"backend": "xgrammar", "disable_any_whitespace": true}',
)  # fmt: skip
"""A model of noise would fill its answer with the blanks that JSON allows."""
SHORT, CHATS, TOOLS = own(2, 10, 48), own(2, 6, 24, "chats"), own(2, 6, 24, "tools")
FORMS = own(2, 6, 48, name="forms", response_format=json.dumps(FORM))
SQL = own(2, 6, 24, name="sql", adapter="sql")
WORKLOADS = (SHORT, CHATS, TOOLS, FORMS)


def program(directory: Path, programs: Path) -> Path:
    """`vllm` as its wheel has it, which `setup` does not install."""
    made = programs / "vllm"
    made.write_text(f'#!/bin/sh\nexec "{directory}/venv/bin/python" -m vllm.entrypoints.cli.main "$@"\n')
    made.chmod(0o755)
    return made


def environment(programs: Path) -> dict[str, str]:
    return {
        **environ(programs),
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_USE_V2_MODEL_RUNNER": "0",  # the operator asks for the second, which ends without Triton
        "DO_NOT_TRACK": "1",
    }


def engine(directory: Path, programs: Path) -> Engine:
    program(directory, programs)
    folder = staged(directory / "models", programs)
    return Engine(
        type="vLLM",
        version="0.33.0",
        server=replace(server(*ARGS), target=TARGET, served_name="tiny-llama"),
        arms=ARMS,
        folder=folder,
        models={TARGET.source: "target", HEAD.source: "eagle3"},
        command=lambda arm, argv: argv,
        environment=environment(programs),
        workloads=WORKLOADS,
        parity=Parity(samples=4, max_tokens=24),
    )


@pytest.fixture(scope="module")
def vllm(tmp_path_factory: pytest.TempPathFactory, tell: Callable[[Measured], Measured]) -> Measured:
    programs, directory = tmp_path_factory.mktemp("programs"), tmp_path_factory.mktemp("round")
    found = engine(Path(os.environ["VLLM_DIR"]), programs)
    return tell(measure(found, directory, ROOT / "docs" / "reports" / "vllm.md", "A round"))


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory, tell: Callable[[Measured], Measured]) -> Measured:
    """Without EAGLE3: on a CPU its server dies of the first request of an adapter (docs/engines.md)."""
    programs, directory = tmp_path_factory.mktemp("programs"), tmp_path_factory.mktemp("round")
    found = engine(Path(os.environ["VLLM_DIR"]), programs)
    args = (*ARGS[:3], "--enable-lora", "--lora-modules", f"sql={found.folder / 'sql'}")
    loaded = replace(server(*args), target=TARGET, served_name="tiny-llama")
    changed = replace(found, server=loaded, arms=(BASE, NGRAM), workloads=(SHORT, SQL), parity=None)
    return tell(measure(changed, directory, ROOT / "docs" / "reports" / "vllm.md", "A round with an adapter"))


def test_an_adapter_is_measured_beside_its_model(adapter: Measured) -> None:
    assert {key: one.why for key, one in adapter.outcome.judged.items() if not one.valid} == {}
    assert len(adapter.outcome.judged) == 4


def test_the_real_server_was_measured(vllm: Measured) -> None:
    assert (vllm.outcome.result.engine_version, vllm.outcome.result.emulated) == ("0.33.0", False)


def test_every_point_is_evidence(vllm: Measured) -> None:
    """Also of EAGLE3, which runs on the CPU, of three turns, tools, a JSON schema and an adapter."""
    assert {key: one.why for key, one in vllm.outcome.judged.items() if not one.valid} == {}
    assert len(vllm.outcome.judged) == len(ARMS) * len(WORKLOADS)


def test_all_arms_resolved_alike_but_for_their_speculation(vllm: Measured) -> None:
    for name in COMPARED:
        assert len({repr(vllm.resolved(arm.name)[name]) for arm in ARMS}) == 1, name
    methods = [vllm.resolved(arm.name).get("method") for arm in ARMS]
    assert methods == [None, "ngram", "eagle3"]
    assert [vllm.resolved(arm.name).get("draft_positions") for arm in ARMS[1:]] == [3, 3]


@pytest.mark.parametrize("workload", [SHORT.name, CHATS.name])
def test_a_head_of_noise_accepts_nothing_and_every_token_is_a_verify_call(vllm: Measured, workload: str) -> None:
    """All but the first of a request, which its prefill yields."""
    point = vllm.point("noise", workload)
    assert point.output_tokens is not None
    assert point.verify_calls is not None
    assert point.accept_length == pytest.approx(1.0, abs=0.05)
    assert 0 <= point.output_tokens - point.completed - point.verify_calls <= 0.05 * point.output_tokens


def test_what_a_grammar_does_not_allow_is_no_verify_call(vllm: Measured) -> None:
    """Drafts are cut to what the grammar takes before they are counted; of noise it takes next to nothing."""
    point = vllm.point("noise", FORMS.name)
    assert point.output_tokens is not None
    assert (point.verify_calls or 0) < 0.2 * point.output_tokens


def test_a_step_without_an_n_gram_is_no_verify_call(vllm: Measured) -> None:
    """It proposes nothing and is in no counter, so the length is of the other steps (docs/report.md)."""
    for workload in (SHORT, CHATS):
        point, verified = yielded(vllm, "ngram", workload.name)
        assert 1.0 <= (point.accept_length or 0) <= 4.0
        assert verified <= 3 * point.completed + 0.5


def yielded(vllm: Measured, arm: str, workload: str) -> tuple[Point, float]:
    """Tokens of verify calls beyond those that clients received, the first of each request left out."""
    point = vllm.point(arm, workload)
    assert point.verify_calls is not None
    assert point.output_tokens is not None
    assert 1 + sum(point.accepted_at) == pytest.approx(point.accept_length, rel=1e-3)
    return point, point.verify_calls * (point.accept_length or 0) - (point.output_tokens - point.completed)


def test_every_answer_has_the_form_that_was_asked_for(vllm: Measured) -> None:
    """xgrammar holds every arm to the schema, drafts included."""
    for arm in ARMS:
        point = vllm.point(arm.name, FORMS.name)
        assert (point.completed, point.malformed) == (FORMS.dataset.requests, 0)


def test_no_answer_of_a_candidate_parts_from_the_baselines_by_more_than_rounding(vllm: Measured) -> None:
    """Their logprobs are read: where answers part, the gap is known."""
    baseline, *candidates = vllm.outcome.result.replicates
    assert baseline.outputs
    assert len(baseline.outputs.digests) == 4
    for one in candidates:
        assert one.outputs
        assert (one.outputs.unknown, one.outputs.diverged) == ("", ()), one.arm
        assert one.outputs.identical + one.outputs.near_ties == 4


def test_the_baseline_speculates_about_nothing(vllm: Measured) -> None:
    for workload in WORKLOADS:
        point = vllm.point("baseline", workload.name)
        assert (point.accept_length, point.verify_calls, point.retractions) == (None, None, 0)
