"""Pages and logs of servers, whatever they say: a round's probe, the operator's monitor, and the cause of an end."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.foreign.values import ANY, FEW, ODD, mangled, refused, said, spoiled, text_of

from paceline.controller.prometheus import read_samples
from paceline.core import Parity
from paceline.engines import ENGINES, Monitor, Scrape, UnreadableError
from paceline.engines.log_tail import failure_line
from paceline.evidence import clocks
from paceline.evidence.arguments import comparable, pick, publishable
from paceline.pods.round.parity import Answer, Incomparable, compare, read_answer
from paceline.pods.round.steps import UNREADABLE_PAGE

CAPTURES = Path(__file__).parents[2] / "contract" / "captures"


def counters(of: str) -> list[str]:
    """The samples of a captured page, without histograms' parts: most of its 700 lines."""
    lines = (CAPTURES / of / "metrics.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#") and "_bucket" not in line][:80]


SGLANG, VLLM = counters("eagle3"), counters("vllm/eagle3")
JAX_LOG = (CAPTURES / "sglang_jax" / "eagle3" / "server.log").read_bytes()
VLLM_LOG = (CAPTURES / "vllm" / "eagle3" / "start.log").read_bytes()
SERVER = json.loads((CAPTURES / "eagle3" / "server_info.json").read_text())
INFO = {name: SERVER[name] for name in sorted(SERVER) if name.startswith(("spec", "internal", "max_", "version"))}
OF = [("SGLang", "0.4.5"), ("SGLang", "0.5.6"), ("SGLang", "0.5.23"), ("vLLM", "0.33.0"), ("SGLangJAX", "0.1.0rc0")]
NUMBERS = st.sampled_from(["NaN", "+Inf", "-Inf", "1e308", "-1e308", "1e999", "9" * 5000, "0", "-1", "x", "1_0", "²"])


@st.composite
def pages(draw: st.DrawFn, good: list[str]) -> str:
    """A page of metrics; some of the samples have other values."""
    lines = list(good)
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(lines) - 1))
        lines[at] = f"{lines[at].rpartition(' ')[0]} {draw(NUMBERS)}"
        lines.insert(draw(st.integers(0, len(lines))), lines[at])
    text = "\n".join(lines).encode()
    return draw(st.just(text) | mangled(text)).decode(errors="replace")


def scrape(engine: str, version: str, page: str, info: str, log: str) -> Scrape:
    probe = ENGINES[engine].probe(version)
    return Scrape(pages={path: page if path == "/metrics" else info for path in probe.pages}, log=log)


@pytest.mark.parametrize(("engine", "version"), OF)
@given(data=st.data())
@FEW
def test_a_probe_reads_a_server_or_costs_its_arm(engine: str, version: str, data: st.DataObject) -> None:
    """What a round takes for nonsense is `UNREADABLE`; ProbeError is one of them."""
    page = SGLANG if engine == "SGLang" else VLLM
    log = VLLM_LOG if engine == "vLLM" else JAX_LOG
    probe = ENGINES[engine].probe(version)
    before, after = (
        scrape(
            engine,
            version,
            data.draw(pages(page)),
            data.draw(spoiled(INFO).map(said) | text_of(said(INFO).encode())),
            data.draw(text_of(log)),
        )
        for _ in range(2)
    )
    for reading in (
        lambda: probe.kv_tokens(before),
        lambda: probe.speculation(before, after),
        lambda: probe.work(before, after),
        lambda: probe.draft_tokens(after.pages["/metrics"]) if probe.draft_tokens else None,
    ):
        with refused(*UNREADABLE_PAGE):
            reading()
    with refused(*UNREADABLE_PAGE):
        resolved = probe.resolved(before)
        json.dumps([comparable(resolved, ()), pick(resolved, tuple(resolved)), publishable(resolved)], default=str)


@pytest.mark.parametrize(("engine", "version"), [one for one in OF if one[0] != "SGLangJAX"])
@given(data=st.data())
@FEW
def test_a_monitor_reads_a_page_or_says_why_not(engine: str, version: str, data: st.DataObject) -> None:
    monitor = ENGINES[engine].monitor(version)
    page = data.draw(pages(SGLANG if engine == "SGLang" else VLLM))
    with refused(UnreadableError):
        monitor.read(page.encode())


@pytest.mark.parametrize("value", ["1e308", "NaN", "+Inf", "-Inf"])
def test_sums_that_no_server_counts_are_no_number(value: str) -> None:
    monitor = ENGINES["SGLang"].monitor("0.5.23")
    name = "sglang:generation_tokens_total"
    page = "\n".join(f'{name}{{rank="{rank}"}} {value}' for rank in range(4))
    with pytest.raises(UnreadableError, match=f"{name} is not a number"):
        monitor.read(page.encode())


VECTOR = {
    "status": "success",
    "data": {
        "resultType": "vector",
        "result": [
            {
                "metric": {"__name__": name, "pod": f"pod-{pod}", "job": "j", "instance": instance, "priority": ""},
                "value": [1_795_245_504.123, "17"],
            }
            for name in ("sglang:num_requests_total", "sglang:spec_accept_length", "sglang:num_running_reqs")
            for pod in range(2)
            for instance in "ab"
        ],
    },
}


@given(answer=spoiled(VECTOR).map(lambda value: said(value).encode()) | mangled(said(VECTOR).encode()))
@FEW
def test_prometheus_answers_with_samples_or_is_not_believed(answer: bytes) -> None:
    monitor: Monitor = ENGINES["SGLang"].monitor("0.5.23")
    with refused(UnreadableError):
        samples = read_samples(monitor, answer)
        assert all(type(name) is type(text) is str for of in samples.values() for both in of for name, text in [both])


LOGS = [(CAPTURES / name).read_bytes() for name in ("vllm/engine_killed.log", "sglang_jax/refused_shape.log")]


@given(log=st.sampled_from(LOGS).flatmap(text_of), longest=st.integers(1, 300))
@FEW
def test_the_line_that_tells_why_is_never_longer_than_asked(log: str, longest: int) -> None:
    assert len(failure_line(log, longest)) <= longest


GPUS = b"""uuid, clocks.sm, clocks.max.sm, power.draw, power.limit, temperature.gpu, clocks_event_reasons.active
GPU-0, 1755, 1980, 350.11, 700.00, 61, 0x0000000000000004
GPU-1, 1755 MHz, 1980 MHz, 350.11 W, 700.00 W, 61, 0x4
"""
CELLS = st.sampled_from(["nan", "inf", "-inf", "1e999", "0x", "0xzz", "0x" + "f" * 400, "[N/A]", '"', "", "9" * 5000])


@st.composite
def readings(draw: st.DrawFn) -> str:
    rows = [line.split(", ") for line in GPUS.decode().splitlines()]
    for _ in range(draw(st.integers(0, 3))):
        rows[draw(st.integers(1, 2))][draw(st.integers(0, 6))] = draw(CELLS)
    return "\n".join(map(", ".join, rows))


@given(before=readings() | text_of(GPUS), after=readings())
@FEW
def test_what_nvidia_smi_says_is_read_or_skipped(before: str, after: str) -> None:
    found = clocks.clocks_around(None, "code@1", clocks.read_clocks(before), clocks.read_clocks(after), 10.0)
    assert found is None or json.dumps(asdict(found), allow_nan=False)


ANSWER = json.loads((CAPTURES / "base" / "chat_logprobs.json").read_text())


@given(body=spoiled(ANSWER), other=spoiled(ANSWER))
@FEW
def test_an_answer_is_compared_or_incomparable(body: object, other: object) -> None:
    answers: list[Answer] = []
    for one in (body, other):
        if isinstance(one, dict):
            with refused(Incomparable):
                answers.append(read_answer(one))
    if len(answers) == 2:
        compare(Parity(samples=1), answers[:1], answers[1:])


@given(told=ANY)
@FEW
def test_acceptance_by_position_is_counts_or_nothing(told: object) -> None:
    histogram = ENGINES["SGLang"].probe("0.5.23").histogram
    assert histogram
    counts = histogram.read({"sglext": {"spec_tokens_details": {"spec_correct_drafts_histogram": told}}})
    assert all(isinstance(count, int) for count in counts)
    assert histogram.read({"sglext": ODD[0]}) == ()
