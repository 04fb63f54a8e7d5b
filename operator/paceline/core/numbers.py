"""Numbers of a round: of the result that its client writes, and of the record that is kept of it."""

from typing import Annotated

from pydantic import Field

from paceline.core.record import ALWAYS, Count, Number, record


@record
class ContextNumbers:
    """Requests of one load whose prompts have at least `over` tokens, and fewer than the next ones."""

    over: Annotated[Count, ALWAYS] = 0
    """Tokens of a prompt, as the server counts them."""
    requests: Count | None = None
    """How many."""
    mean_ttft: Number | None = None
    """Mean time to the first token."""
    speed: Number | None = None
    """Output tokens per second of a request under way."""
    tokens_per_chunk: Number | None = None
    """Output tokens per chunk of an answer; a chunk holds the tokens of one step, so with a draft this is about the
    accept length."""


@record
class Numbers:
    """What the client measured of one arm on one workload, and what the server counted. Times in seconds, throughputs
    in output tokens per second; absent: not available."""

    asked: Count | None = None
    """Requests sent."""
    completed: Count | None = None
    """Requests answered."""
    errors: Count | None = None
    """Requests that failed."""
    output_tokens: Count | None = None
    """Tokens in the answers."""
    output_throughput: Number | None = None
    """All output tokens over the client's duration, ramp and tail included."""
    steady_throughput: Number | None = None
    """Output tokens per second while at least 90 % of a closed loop's concurrency is in use. The gate compares this
    value. Absent at a rate and on a ramp."""
    kept_rate: Number | None = None
    """At a rate: requests answered per second, in the second half."""
    mean_ttft: Number | None = None
    """Mean time to the first token."""
    p95_ttft: Number | None = None
    """TTFT, p95."""
    p50_ttft: Number | None = None
    """TTFT, p50."""
    p99_ttft: Number | None = None
    """TTFT, p99."""
    p90_ttft: Number | None = None
    """TTFT, p90."""
    mean_tpot: Number | None = None
    """Mean time per further token."""
    p95_tpot: Number | None = None
    """TPOT, p95."""
    p50_tpot: Number | None = None
    """TPOT, p50."""
    p99_tpot: Number | None = None
    """TPOT, p99."""
    p99_itl: Number | None = None
    """99th percentile of the time between two chunks of an answer; a chunk holds the tokens of one step."""
    mean_e2e: Number | None = None
    """Mean time of a whole request."""
    p95_e2e: Number | None = None
    """95th percentile of the time of a whole request."""
    accept_length: Number | None = None
    """Tokens per verify step; 1 means that no draft token was accepted."""
    accepted_at: Annotated[tuple[Number, ...], Field(max_length=64)] = ()
    """Fraction of verify steps that accepted the draft token of each position, in order; the sum is `acceptLength` - 1.
    Present if the engine counts it."""
    draft_tokens: Number | None = None
    """Mean number of draft tokens proposed per verify step, if the engine counts them or chooses their number. An
    engine that verifies adaptively later drops some of them and does not report how many."""
    verify_calls: Count | None = None
    """Verify steps."""
    retractions: Count | None = None
    """Requests that the server took back when memory ran out."""
    cache_hit_rate: Number | None = None
    """Prompt tokens that came from the prefix cache, as a fraction of all, by the server's counters; absent if none did
    or it does not count them."""
    contexts: Annotated[tuple[ContextNumbers, ...], Field(max_length=8)] = ()
    """Results by length of the prompt, for a dataset with turns."""
    malformed: Count | None = None
    """Answers that do not fit `responseFormat`; absent if it is not set."""
    good_requests: Count | None = None
    """Requests that met the workload's slo, if it has one."""
    p50_output: Count | None = None
    """Median tokens of an answer."""
    p99_output: Count | None = None
    """99th percentile of the tokens of an answer."""
    energy_per_token: Number | None = None
    """Joules of all of the arm's GPUs per output token, by NVML's counter, from just before the load to just after it.
    Absent if a GPU is shared or has no counter."""
    worst_decile: Number | None = None
    """Candidate only: a tenth of the prompts has at most this speed-up over the same prompt at the baseline in the same
    round."""
    median_prompt: Number | None = None
    """Median of these speed-ups."""
    best_decile: Number | None = None
    """A tenth of the prompts has at least this speed-up."""
    slower_prompts: Number | None = None
    """Fraction of the prompts that were slower than at the baseline."""
    request_spread: Number | None = None
    """Standard deviation of ln(speed of a request) over the requests of a closed loop; in the first round's
    baseline it sets how many requests later rounds send."""
    warm_up_windows: Count | None = None
    """Windows of requests that warmed the server up, at most 4."""
    warm_up_gain: Number | None = None
    """How much faster requests were in the last of these windows than in the one before, as a fraction. Above 0.05
    the server may have become faster during the load."""


@record
class TimeParts:
    """Seconds of one server; absent: not known."""

    imports: Number | None = None
    """From its start until it loads the first weights: Python's imports, in each of its processes, and its set-up."""
    weights: Number | None = None
    """Loading weights, those of a draft included."""
    graphs: Number | None = None
    """Capturing CUDA graphs, and compiling for them. What is left of `startSeconds` is the KV cache, the tokenizer,
    and the server's own warm-up."""
    warm_up: Number | None = None
    """Requests of the warm-ups."""
    loads: Number | None = None
    """The measured workloads."""
    end: Number | None = None
    """From the word to stop until its last process was gone."""
