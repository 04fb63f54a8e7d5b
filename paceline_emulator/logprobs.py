"""`choices[].logprobs` of a chat answer, as the real servers write it.

Shapes: `ChoiceLogprobs` of `srt/entrypoints/openai/protocol.py`, SGLang 0.5.23; vLLM's `ChatCompletionLogProbs` has the
same fields. The chosen token is among its own alternatives.
"""

import math
from typing import Any

from paceline_emulator.prompts import END, WORDS, Prompt

GAP = 2.0
"""Nats between the likeliest token and the next, where nothing else is said."""
LATER = 1.0
"""Nats between any two after these."""
REFUSED = "logprobs are not supported: an emulated fault (PACELINE_EMULATE_LOGPROBS)"


def asked(body: dict[str, Any]) -> int | None:
    """How many alternatives; None: no logprobs, whatever else is said (SGLang passes over `top_logprobs` then)."""
    return int(body.get("top_logprobs") or 0) if body.get("logprobs") else None


def content(prompt: Prompt, produced: int, top: int, gap: float, *, ends: bool) -> dict[str, Any]:
    """Of an answer of so many tokens; `ends`: the last of them is its natural end. `gap`: at the prompt's fork."""
    return {"content": [_entry(prompt, index, top, gap, ends and index == produced - 1) for index in range(produced)]}


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
