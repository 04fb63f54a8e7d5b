"""How vLLM writes an answer: whole, and in chunks. Captured: tests/contract/captures/vllm/answers.jsonl."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from paceline_emulator import logprobs
from paceline_emulator.dialects import Asked, Body, read_chat, read_completion
from paceline_emulator.logprobs import Entries
from paceline_emulator.server import Job

FINGERPRINT = "vllm-0.33.0-emulated"
DONE = b"data: [DONE]\n\n"
NO_MORE = {"kv_transfer_params": None, "ec_transfer_params": None, "metrics": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What is asked at one path. `read` raises ValueError for a body that makes no sense; the others get the tokens
    [start, stop), with what they end with once that is known."""

    prefix: str
    object: str
    needs: str
    """The field without which there is no request."""
    read: Callable[[Body, dict[str, str]], Asked]
    opening: Callable[[Mapping[str, Any]], Body] | None
    chunk: Callable[[Asked, Job, int, int, str | None], Body]
    whole: Callable[[Asked, Job], Body]


def chat_opening(frame: Mapping[str, Any]) -> Body:
    """The role comes in a chunk of its own."""
    delta = {"role": "assistant", "content": ""}
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
    return {**frame, "choices": [choice], "prompt_token_ids": None, "prompt_text": None}


def chat_chunk(asked: Asked, job: Job, start: int, stop: int, finish: str | None) -> Body:
    last = {} if finish is None else {"stop_reason": None, "weight_versions": None}
    return {
        "index": 0,
        "delta": {"content": text(job, start, stop)},
        "logprobs": _of_chat(asked, job, start, stop),
        "finish_reason": finish,
        "token_ids": None,
        **last,
    }


def completion_chunk(asked: Asked, job: Job, start: int, stop: int, finish: str | None) -> Body:
    return {
        "index": 0,
        "text": text(job, start, stop),
        "logprobs": _of_completion(asked, job, start, stop),
        "finish_reason": finish,
        "stop_reason": None,
        "prompt_token_ids": None,
        "token_ids": None,
        "weight_versions": None,
    }


def chat_whole(asked: Asked, job: Job) -> Body:
    produced = job.request.produced
    said = dict.fromkeys(("refusal", "annotations", "audio", "function_call", "reasoning"))
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text(job, 0, produced), **said},
        "logprobs": _of_chat(asked, job, 0, produced),
        "finish_reason": job.finish,
        **dict.fromkeys(("stop_reason", "token_ids", "routed_experts", "weight_versions")),
    }
    of_the_prompt = dict.fromkeys(("prompt_logprobs", "prompt_token_ids", "prompt_text"))
    return {**_around(choice, job), **of_the_prompt, **NO_MORE}


def completion_whole(asked: Asked, job: Job) -> Body:
    produced = job.request.produced
    rest = (
        "stop_reason", "token_ids", "prompt_logprobs", "prompt_token_ids", "routed_experts", "weight_versions",
    )  # fmt: skip
    choice = {
        "index": 0,
        "text": text(job, 0, produced),
        "logprobs": _of_completion(asked, job, 0, produced),
        "finish_reason": job.finish,
        **dict.fromkeys(rest),
    }
    return {**_around(choice, job), **NO_MORE}


def _around(choice: Body, job: Job) -> Body:
    details = {"prompt_tokens_details": None, "completion_tokens_details": None}
    return {
        "choices": [choice],
        "service_tier": None,
        "system_fingerprint": FINGERPRINT,
        "usage": {**usage(job), **details},
    }


def usage(job: Job) -> Body:
    prompt, produced = job.request.prompt_tokens, job.request.produced
    return {"prompt_tokens": prompt, "total_tokens": prompt + produced, "completion_tokens": produced}


def text(job: Job, start: int, stop: int) -> str:
    return job.prompt.text(start, stop, ends=_ends(job, stop)) if stop > start else ""


def _ends(job: Job, stop: int) -> bool:
    return job.finish == "stop" and stop == job.request.produced


def _of_chat(asked: Asked, job: Job, start: int, stop: int) -> Body | None:
    entries = _entries(asked, job, stop)
    return None if entries is None else {"content": entries[start:]}


def _of_completion(asked: Asked, job: Job, start: int, stop: int) -> Body | None:
    entries = _entries(asked, job, stop)
    return None if entries is None else logprobs.of_a_completion(entries, offsets=True, since=start)


def _entries(asked: Asked, job: Job, stop: int) -> Entries | None:
    """One for each token up to `stop`; None if no request asked for them."""
    if asked.logprobs is None:
        return None
    said = logprobs.content(job.prompt, stop, asked.logprobs, job.fork_gap, ends=_ends(job, stop))
    entries: Entries = said["content"]
    return entries


def sse(value: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


KINDS = {
    "/v1/chat/completions": Kind(
        prefix="chatcmpl",
        object="chat.completion",
        needs="messages",
        read=read_chat,
        opening=chat_opening,
        chunk=chat_chunk,
        whole=chat_whole,
    ),
    "/v1/completions": Kind(
        prefix="cmpl",
        object="text_completion",
        needs="prompt",
        read=read_completion,
        opening=None,
        chunk=completion_chunk,
        whole=completion_whole,
    ),
}
