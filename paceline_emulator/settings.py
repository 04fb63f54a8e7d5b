"""What the emulator is told by its environment: argv stays pure SGLang.

| variable | default | meaning |
|---|---|---|
| PACELINE_EMULATE_STARTUP_SECONDS | 2 | from the process's start to the open port (loading and graph capture) |
| PACELINE_EMULATE_WARMUP_SECONDS | 0.2 | from the open port to ready: 503 from /health and /ready |
| PACELINE_EMULATE_NOISE_CV | 0.003 | log-normal noise of a point's throughput; a new factor at start and each flush |
| PACELINE_EMULATE_SPEED | 1 | times the speed of the profile |
| PACELINE_EMULATE_DRAIN_POLL_SECONDS | 0.5 | how often the drain after SIGTERM looks; SGLang's is 5 |
| PACELINE_EMULATE_FAIL_FRACTION | 0 | that fraction of requests fails: a 500, or an error inside a streamed 200 |
| PACELINE_EMULATE_FAIL_FRACTION_WHEN | always | `speculative`, `baseline` or `always`: which servers do it |
| PACELINE_EMULATE_DIE_AFTER_REQUESTS | never | as if a scheduler died when this many requests have finished |
| PACELINE_EMULATE_DIE_AFTER_REQUESTS_WHEN | always | as above |
| PACELINE_EMULATE_LEAVE_AT | never | at this token some answers go on with the second likeliest, and then otherwise |
| PACELINE_EMULATE_LEAVE_AT_WHEN | always | as above |
| PACELINE_EMULATE_LEAVE_GAP | 2 | nats by which the likeliest is likelier there, on every server |
| PACELINE_EMULATE_LEAVE_FRACTION | 0.25 | that fraction of prompts |
| PACELINE_EMULATE_DIVERGE | 0 | that fraction of answers ends elsewhere than the prompt says: others on each server |
| PACELINE_EMULATE_DIVERGE_WHEN | always | as above |
| PACELINE_EMULATE_DIVERGE_SPREAD | 0.2 | by how much, as a log-normal deviation; sooner as often as later |
| PACELINE_EMULATE_DIVERGE_LENGTH | 1 | times as long as they would be, besides |
| PACELINE_EMULATE_MALFORMED | 0 | that fraction of answers under a response_format lacks its last character |
| PACELINE_EMULATE_MALFORMED_WHEN | always | as above |
| PACELINE_EMULATE_LOGPROBS | true | whether a request for logprobs is not refused |
| PACELINE_EMULATE_VERSION | 0.5.23 | the release that is shown: 0.4.5, and 0.5.6 with a fork's hook, too |
| POD_UID | random | seeds the noise; set from the downward API |

Read as SGLang reads them: HF_HUB_OFFLINE, HF_HUB_CACHE, HF_HOME, SGL_FORCE_SHUTDOWN, SGLANG_SIMULATE_ACC_LEN,
SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION, SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN.
"""

import math
import random
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from paceline_emulator.older import NEWEST, SURFACES, Surface
from paceline_emulator.prompts import Prompt

PREFIX = "PACELINE_EMULATE_"
CONDITIONS = ("always", "speculative", "baseline")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """`amount` is a fraction or a number of requests; None: no fault."""

    amount: float | None
    when: str

    def of(self, speculative: bool) -> float | None:
        """The amount on a server that speculates or does not."""
        applies = {"always": True, "speculative": speculative, "baseline": not speculative}[self.when]
        return self.amount if applies else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """Where some answers may go on in another way, on which servers they do, and how near it was."""

    at: Fault
    where: int | None
    gap: float
    fraction: float

    def of(self, prompt: Prompt, speculative: bool) -> Prompt:
        if self.where is None or prompt.digest[-1] >= 256 * self.fraction:
            return prompt
        return replace(prompt, fork=self.where, left=self.at.of(speculative) is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diverging:
    """What rounding does to greedy answers of a real engine under load: some part from what another server would write,
    and then end elsewhere."""

    fraction: Fault
    spread: float
    length: float

    def of(self, prompt: Prompt, speculative: bool, server: str) -> Prompt:
        """As this very server would answer it, again and again."""
        dice = random.Random(f"{server} {prompt.digest.hex()}")
        if dice.random() >= (self.fraction.of(speculative) or 0.0):
            return prompt
        length = prompt.natural_length * self.length * dice.lognormvariate(0.0, self.spread)
        return replace(prompt, natural_length=max(1, round(length)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Seconds, and fractions of one."""

    surface: Surface
    startup: float
    warmup: float
    noise: float
    speed: float
    drain_poll: float
    fail: Fault
    die: Fault
    uid: str
    hub_cache: Path
    offline: bool
    force_shutdown: bool
    health_generates: bool
    overwrite_longer_context: bool
    simulated_acceptance: float | None
    leaving: Leaving
    diverging: Diverging
    logprobs: bool
    malformed: Fault


def read(env: Mapping[str, str]) -> Settings:
    """The table above; a value that cannot be read is a ValueError that names the variable."""
    simulated = _number(env, "SGLANG_SIMULATE_ACC_LEN", -1.0)
    return Settings(
        surface=_surface(env),
        startup=_number(env, f"{PREFIX}STARTUP_SECONDS", 2.0),
        warmup=_number(env, f"{PREFIX}WARMUP_SECONDS", 0.2),
        noise=_number(env, f"{PREFIX}NOISE_CV", 0.003),
        speed=_number(env, f"{PREFIX}SPEED", 1.0),
        drain_poll=_number(env, f"{PREFIX}DRAIN_POLL_SECONDS", 0.5),
        fail=_fault(env, "FAIL_FRACTION"),
        die=_fault(env, "DIE_AFTER_REQUESTS"),
        uid=env.get("POD_UID") or uuid.uuid4().hex,
        hub_cache=_hub_cache(env),
        offline=_true(env, "HF_HUB_OFFLINE"),
        force_shutdown=_true(env, "SGL_FORCE_SHUTDOWN"),
        health_generates=_true(env, "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION", default=True),
        overwrite_longer_context=_true(env, "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"),
        simulated_acceptance=simulated if simulated > 0 else None,
        leaving=_leaving(env),
        diverging=Diverging(
            fraction=_fault(env, "DIVERGE"),
            spread=_number(env, f"{PREFIX}DIVERGE_SPREAD", 0.2),
            length=_number(env, f"{PREFIX}DIVERGE_LENGTH", 1.0),
        ),
        logprobs=_true(env, f"{PREFIX}LOGPROBS", default=True),
        malformed=_fault(env, "MALFORMED"),
    )


def _surface(env: Mapping[str, str]) -> Surface:
    version = env.get(f"{PREFIX}VERSION") or NEWEST
    if version not in SURFACES:
        raise ValueError(f"{PREFIX}VERSION is {version!r}, not one of {', '.join(SURFACES)}")
    return SURFACES[version]


def _number(env: Mapping[str, str], name: str, default: float) -> float:
    try:
        value = float(env.get(name) or default)
    except ValueError:
        raise ValueError(f"{name} is not a number: {env[name]!r}") from None
    if not math.isfinite(value):
        raise ValueError(f"{name} is not finite: {env[name]!r}")
    return value


def _fault(env: Mapping[str, str], name: str) -> Fault:
    when = env.get(f"{PREFIX}{name}_WHEN") or "always"
    if when not in CONDITIONS:
        raise ValueError(f"{PREFIX}{name}_WHEN is {when!r}, not one of {', '.join(CONDITIONS)}")
    amount = _number(env, f"{PREFIX}{name}", 0.0)
    return Fault(amount=amount if amount > 0 else None, when=when)


def _leaving(env: Mapping[str, str]) -> Leaving:
    at = _fault(env, "LEAVE_AT")
    return Leaving(
        at=at,
        where=None if at.amount is None else int(at.amount),
        gap=_number(env, f"{PREFIX}LEAVE_GAP", 2.0),
        fraction=_number(env, f"{PREFIX}LEAVE_FRACTION", 0.25),
    )


def _hub_cache(env: Mapping[str, str]) -> Path:
    home = env.get("HF_HOME") or str(Path(env.get("HOME") or "/") / ".cache" / "huggingface")
    return Path(env.get("HF_HUB_CACHE") or Path(home) / "hub")


def _true(env: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    value = env.get(name)
    return default if value is None else value.strip().lower() in ("1", "true", "yes", "on", "y", "t")
