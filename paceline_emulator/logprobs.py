"""`choices[].logprobs` of an answer, as the real servers write it.

Shapes: `ChoiceLogprobs` of `srt/entrypoints/openai/protocol.py`, SGLang 0.5.23; vLLM's `ChatCompletionLogProbs` has the
same fields. The chosen token is among its own alternatives.
"""

import math
from typing import Any

from paceline_emulator.prompts import END, WORDS, Prompt

Entries = list[dict[str, Any]]
"""One a token, with the alternatives that were asked for."""

GAP = 2.0
"""Nats between the likeliest token and the next, where nothing else is said."""
LATER = 1.0
"""Nats between any two after these."""
REFUSED = "logprobs are not supported: an emulated fault (PACELINE_EMULATE_LOGPROBS)"


def asked(body: dict[str, Any]) -> int | None:
    """How many alternatives; None: no logprobs, whatever else is said (SGLang passes over `top_logprobs` then)."""
    return int(body.get("top_logprobs") or 0) if body.get("logprobs") else None


def asked_of_a_completion(body: dict[str, Any]) -> int | None:
    """There a number says both."""
    return None if body.get("logprobs") is None else int(body["logprobs"])


def content(prompt: Prompt, produced: int, top: int, gap: float, *, ends: bool) -> dict[str, Any]:
    """Of an answer of so many tokens; `ends`: the last of them is its natural end. `gap`: at the prompt's fork."""
    return {"content": [_entry(prompt, index, top, gap, ends and index == produced - 1) for index in range(produced)]}


def of_a_completion(entries: Entries, *, offsets: bool, since: int = 0) -> dict[str, Any]:
    """The older shape, of the tokens from `since` on; without offsets each is -1, as SGLang has it."""
    starts = [0]
    for entry in entries:
        starts.append(starts[-1] + len(entry["token"]))
    told = entries[since:]
    return {
        "text_offset": starts[since:-1] if offsets else [-1] * len(told),
        "token_logprobs": [entry["logprob"] for entry in told],
        "tokens": [entry["token"] for entry in told],
        "top_logprobs": [{one["token"]: one["logprob"] for one in entry["top_logprobs"]} for entry in told],
    }


def _entry(prompt: Prompt, index: int, top: int, gap: float, last: bool) -> dict[str, Any]:
    forked, left = prompt.fork == index, prompt.fork == index and prompt.left
    gaps = [0.0, gap if forked else GAP]
    gaps += [gaps[1] + LATER * n for n in range(1, max(1, top - 1))]
    first = -math.log(math.fsum(math.exp(-one) for one in gaps))
    # At a fork the two likeliest are the same on all servers, whichever is taken.
    words = [WORDS[(prompt.token(index) - left + n) % len(WORDS)] for n in range(len(gaps))]
    if last:
        words[0] = END
    listed = [_said(word, first - one) for word, one in zip(words, gaps, strict=True)]
    return {**listed[left and not last], "top_logprobs": listed[:top]}


def _said(word: str, logprob: float) -> dict[str, Any]:
    return {"token": word, "bytes": list(word.encode()), "logprob": logprob}
