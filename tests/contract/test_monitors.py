"""What is read of a served pool, against pages of real engines: each counter that is watched is one of theirs."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from paceline.engines import ENGINES, Counts, Monitor, UnreadableError
from paceline.watch.windows import Increase, add_reading

CAPTURES = Path(__file__).parent / "captures"
SGLANG, VLLM = ENGINES["SGLang"].monitor("0.5.23"), ENGINES["vLLM"].monitor("0.33.0")
START = {
    "eagle3": SGLANG, "eagle": SGLANG, "ngram": SGLANG, "base": SGLANG, "vllm/eagle3": VLLM, "vllm/base": VLLM,
}  # fmt: skip


def page(of: str, name: str = "metrics.txt") -> bytes:
    return (CAPTURES / of / name).read_bytes()


def shown(counts: Counts) -> Increase:
    """Since the server's start."""
    return Increase(**{name: getattr(counts, name) for name in Increase.__slots__})


@pytest.mark.parametrize("of", START)
def test_the_samples_are_those_that_prometheus_reads(of: str) -> None:
    monitor = START[of]
    families = text_string_to_metric_families(page(of).decode())
    samples = [each for family in families for each in family.samples if each.name in monitor.names]
    assert samples
    assert monitor.read(page(of)) == monitor.counts((each.name, each.value) for each in samples)


@pytest.mark.parametrize("version", ["0.5.6", "0.5.23"])
def test_requests_under_way_are_counted_once_where_priorities_break_them_down(version: str) -> None:
    """SGLang with --enable-priority-scheduling: 5 run and 3 wait. Counters have no total: each priority's counts."""
    gauge = 'sglang:num_{of}_reqs{{model_name="m",pp_rank="0",priority="{priority}",tp_rank="0"}} {value}\n'
    shown = [("running", "", 5), ("running", "0", 4), ("running", "7", 1), ("queue", "", 3), ("queue", "0", 3)]
    text = "".join(gauge.format(of=of, priority=priority, value=value) for of, priority, value in shown)
    text += "".join(f'sglang:num_requests_total{{priority="{priority}"}} 20\n' for priority in (0, 7))
    monitor = ENGINES["SGLang"].monitor(version)
    found = monitor.read(text.encode())
    assert (found.under_way, found.requests) == (8, 40)
    assert monitor.read(b"sglang:num_running_reqs 2\n").under_way == 2


@pytest.mark.parametrize("of", ["eagle3", "vllm/eagle3"])
def test_a_head_that_accepts_nothing_has_the_length_1(of: str) -> None:
    """Both captures are of random weights. SGLang generated 424 tokens for 18 requests in 406 verify calls; the last of
    each request is left out."""
    monitor = START[of]
    found = shown(monitor.read(page(of)))
    assert found.accept_length == 1.0
    assert found.verify_steps == {"eagle3": 388, "vllm/eagle3": 297}[of]


@pytest.mark.parametrize(
    ("requests", "longer", "generated", "calls", "length"),
    [
        (34, 34, 2088, 832, 2.50),  # a real server, of answers of 61 tokens, whose own average was 2.50
        (100, 100, 500, 200, 3.0),  # answers of five tokens, at a length of 3.5: two steps each, the second cut short
        (100, 100, 200, 100, None),  # answers of two tokens: no step is a whole one
        (1034, 34, 3088, 832, 2.50),  # the first, among a thousand answers of one token, which have no step
    ],
)
def test_short_answers_are_no_worse(
    requests: int, longer: int, generated: int, calls: int, length: float | None
) -> None:
    text = f"""
sglang:num_requests_total {requests}
sglang:request_time_per_output_token_seconds_count {longer}
sglang:generation_tokens_total {generated}
sglang:spec_verify_calls_total {calls}
"""
    found = shown(SGLANG.read(text.encode()))
    assert found.accept_length == (None if length is None else pytest.approx(length, rel=0.02))


def test_0_5_17_tells_no_answers_of_one_token_apart() -> None:
    """It has no histogram of times per output token: every request is taken to have had a last step."""
    text = "sglang:num_requests_total 34\nsglang:generation_tokens_total 2088\nsglang:spec_verify_calls_total 832\n"
    found = shown(ENGINES["SGLang"].monitor("0.5.17").read(text.encode()))
    assert found.accept_length == pytest.approx(2.50, rel=0.02)


@pytest.mark.parametrize(
    ("of", "requests", "ttft", "itl"),
    [("eagle3", 18, 0.5371 / 18, 7.8327 / 399), ("vllm/eagle3", 15, 13.6246 / 15, 11.0434 / 297)],
)
def test_latencies_are_a_tokens(of: str, requests: int, ttft: float, itl: float) -> None:
    found = shown(START[of].read(page(of)))
    assert found.requests == requests
    assert found.ttft == pytest.approx(ttft, rel=1e-4)
    assert found.itl == pytest.approx(itl, rel=1e-4)


@pytest.mark.parametrize(("of", "missing"), [("eagle3", ""), ("vllm/eagle3", ""), ("vllm/base", "spec_")])
def test_every_metric_that_is_watched_is_on_the_page(of: str, missing: str) -> None:
    """Without speculation only the counters of speculation are missing."""
    names = {line.split(b"{")[0].split(b" ")[0].decode() for line in page(of).splitlines()}
    watched = START[of].names
    assert watched - names == {name for name in watched if missing and missing in name}


def test_a_release_without_a_counter_of_verify_calls_is_read_by_its_gauge() -> None:
    """3,000 tokens at a mean length of 2.5, while the gauge of the last interval says so."""
    monitor = ENGINES["SGLang"].monitor("0.5.6")
    text = (
        'sglang:num_requests_total{{m="a"}} {requests}\nsglang:generation_tokens_total{{m="a"}} {tokens}\n'
        'sglang:spec_accept_length{{dp="0"}} 2.0\nsglang:spec_accept_length{{dp="1"}} 3.0\n'
    )
    pages = [text.format(requests=n, tokens=101 * n).encode() for n in (0, 10, 30)]
    window = None
    for at, each in enumerate(pages):
        window = add_reading(window, monitor, monitor.read(each), at, 60)
    assert window is not None
    assert shown(window.last.counts).accept_length == pytest.approx(2.5)
    assert shown(window.last.counts).verify_steps == pytest.approx(1200)


@pytest.mark.parametrize(
    ("monitor", "text", "why"),
    [
        (SGLANG, b"<html>sign in</html>", "no line of sglang:*"),
        (SGLANG, page("vllm/eagle3"), "no line of sglang:*"),
        (SGLANG, b"sglang:num_requests_total NaN\n", "sglang:num_requests_total is not a number"),
        (VLLM, b"vllm:num_requests_running{} 1e999\n", "vllm:num_requests_running is not a number"),
    ],
)
def test_what_is_no_page_of_the_engine_is_not_read(monitor: Monitor, text: bytes, why: str) -> None:
    with pytest.raises(UnreadableError, match=why.replace("*", r"\*")):
        monitor.read(text)


def test_a_counter_that_fell_begins_anew() -> None:
    counts = SGLANG.read(page("eagle3"))
    window = add_reading(None, SGLANG, counts, 0, 60)
    window = add_reading(window, SGLANG, counts, 30, 60)
    window = add_reading(window, SGLANG, replace(counts, requests=1), 60, 60)
    assert [reading.at for reading in window.readings] == [60]


def test_a_page_is_searched_and_not_parsed() -> None:
    """A thousand of them are read every half minute: 0.1 ms each, where the parser of prometheus_client takes 22."""
    text = page("eagle3")

    def seconds(read: Callable[[], object], times: int) -> float:
        began = time.process_time()
        for _ in range(times):
            read()
        return (time.process_time() - began) / times

    parsing = seconds(lambda: list(text_string_to_metric_families(text.decode())), 3)
    assert seconds(lambda: SGLANG.read(text), 30) < parsing / 20


def test_an_engine_without_metrics_says_why() -> None:
    assert "pd_* series only" in ENGINES["SGLangJAX"].monitor("0.1.0rc0").cannot
    assert [SGLANG.cannot, VLLM.cannot] == ["", ""]
