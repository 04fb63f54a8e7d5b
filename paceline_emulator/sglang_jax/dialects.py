"""How sglang-jax writes an answer, where SGLang's is another one. What is read of a request is the same.

Captured: tests/contract/captures/sglang_jax/answers.jsonl.
"""

import json
import time
from dataclasses import replace
from typing import Any

from paceline_emulator import dialects, logprobs
from paceline_emulator.dialects import DONE, END_OF_TURN, Asked, Body, Dialect
from paceline_emulator.logprobs import Entries
from paceline_emulator.server import Job


def chat_chunk(asked: Asked, job: Job, start: int, stop: int) -> bytes:
    """The role comes in a chunk of its own before the first text."""
    role = _sse(_of_chat(asked, job, {"role": "assistant", "content": ""}, None)) if start == 0 else b""
    return role + _sse(_of_chat(asked, job, {"role": None, "content": _text(job, start, stop)}, None))


def chat_closing(asked: Asked, job: Job) -> bytes:
    last = _sse(_of_chat(asked, job, {"role": None, "content": None}, job.finish))
    return last + _told_usage(asked, job, "chat.completion.chunk", {"prompt_tokens_details": None})


def _of_chat(asked: Asked, job: Job, said: Body, finish: str | None) -> Body:
    choice = {
        "index": 0,
        "delta": {**said, "reasoning_content": None, "tool_calls": None, "hidden_states": None},
        "logprobs": None,
        "finish_reason": finish,
        "matched_stop": _matched(job) if finish else None,
    }
    return {**_frame(asked, job, "chat.completion.chunk"), "choices": [choice], "usage": None}


def chat_whole(asked: Asked, job: Job) -> Body:
    said = {"role": "assistant", "content": _text(job, 0, job.request.produced)}
    choice = {
        "index": 0,
        "message": {**said, "reasoning_content": None, "tool_calls": None},
        "logprobs": dialects.chat_logprobs(asked, job),
        "finish_reason": job.finish,
        "matched_stop": _matched(job),
        "hidden_states": None,
    }
    return {**_frame(asked, job, "chat.completion"), "choices": [choice], "usage": _whole_usage(job)}


def completion_chunk(asked: Asked, job: Job, start: int, stop: int) -> bytes:
    last = job.finish is not None and stop == job.request.produced
    choice = {
        "index": 0,
        "text": _text(job, start, stop),
        "logprobs": None,
        "finish_reason": job.finish if last else None,
        "matched_stop": _matched(job) if last else None,
        "hidden_states": None,
    }
    return _sse({**_frame(asked, job, "text_completion"), "choices": [choice], "usage": None})


def completion_closing(asked: Asked, job: Job) -> bytes:
    return _told_usage(asked, job, "text_completion", {})


def completion_whole(asked: Asked, job: Job) -> Body:
    entries = _entries(asked, job)
    choice = {
        "index": 0,
        "text": _text(job, 0, job.request.produced),
        "logprobs": None if entries is None else logprobs.of_a_completion(entries, offsets=False),
        "finish_reason": job.finish,
        "matched_stop": _matched(job),
        "hidden_states": None,
        "routed_experts": None,
    }
    return {**_frame(asked, job, "text_completion"), "choices": [choice], "usage": _whole_usage(job)}


def generate_chunk(asked: Asked, job: Job, start: int, stop: int) -> bytes:
    """Everything so far, each time: /generate streams cumulatively."""
    return _sse(_generated(asked, job, stop))


def generate_whole(asked: Asked, job: Job) -> Body:
    return _generated(asked, job, job.request.produced)


def _generated(asked: Asked, job: Job, stop: int) -> Body:
    """`cache_miss_count` is the mark of a compilation in service: none here, every shape was compiled at the start."""
    request, done = job.request, job.finish is not None and stop == job.request.produced
    entries = _entries(asked, job) if done else None
    return {
        "text": _text(job, 0, stop),
        "output_ids": [job.prompt.token(index) for index in range(stop)],
        "meta_info": {
            "id": request.id,
            "finish_reason": _finish(job) if done else None,
            "prompt_tokens": request.prompt_tokens,
            **({} if entries is None else _of_generate(job, entries)),
            "completion_tokens": stop,
            "cached_tokens": request.cached_tokens,
            "routed_experts": None,
            "cache_miss_count": 0,
            **({"e2e_latency": time.time() - job.began_at} if done else {}),
        },
    }


def _of_generate(job: Job, entries: Entries) -> Body:
    """[logprob, id, text] of each token, the chosen one and the likeliest; of the prompt its last token alone."""
    tokens = [job.prompt.token(index) for index in range(len(entries))]
    chosen = [[entry["logprob"], token, entry["token"]] for entry, token in zip(entries, tokens, strict=True)]
    top = [
        [[one["logprob"], token, one["token"]] for one in entry["top_logprobs"]]
        for entry, token in zip(entries, tokens, strict=True)
    ]
    return {
        "input_token_logprobs": [[None, 0, ""]],
        "output_token_logprobs": chosen,
        "input_top_logprobs": [None],
        "output_top_logprobs": top,
    }


def read_generate(body: Body, known: dict[str, str]) -> Asked:
    asked = dialects.read_generate(body, known)
    return replace(asked, logprobs=int(body.get("top_logprobs_num") or 0) if body.get("return_logprob") else None)


def _entries(asked: Asked, job: Job) -> Entries | None:
    said = dialects.chat_logprobs(asked, job)
    return None if said is None else said["content"]


def _frame(asked: Asked, job: Job, kind: str) -> Body:
    return {"id": job.request.id, "object": kind, "created": int(job.began_at), "model": asked.model}


def _told_usage(asked: Asked, job: Job, kind: str, more: Body) -> bytes:
    told = {**_frame(asked, job, kind), "choices": [], "usage": {**_usage(job), **more}}
    return (_sse(told) if asked.usage else b"") + DONE


def _usage(job: Job) -> Body:
    prompt, produced = job.request.prompt_tokens, job.request.produced
    return {"prompt_tokens": prompt, "total_tokens": prompt + produced, "completion_tokens": produced}


def _whole_usage(job: Job) -> Body:
    return {**_usage(job), "prompt_tokens_details": None}


def _text(job: Job, start: int, stop: int) -> str:
    ends = job.finish == "stop" and stop == job.request.produced
    return job.prompt.text(start, stop, ends=ends) if stop > start else ""


def _matched(job: Job) -> int | None:
    return END_OF_TURN if job.finish == "stop" else None


def _finish(job: Job) -> Body:
    if job.finish == "length":
        return {"type": "length", "length": job.request.length}
    return {"type": "stop", "matched": END_OF_TURN} if job.finish == "stop" else {"type": "abort", "message": "Aborted"}


def _sse(value: Any) -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


OF_SGLANG = dialects.DIALECTS
DIALECTS: dict[str, Dialect] = {
    "/v1/chat/completions": replace(
        OF_SGLANG["/v1/chat/completions"],
        chunk=chat_chunk,
        closing=chat_closing,
        whole=chat_whole,
        check=lambda _: None,
    ),
    "/v1/completions": replace(
        OF_SGLANG["/v1/completions"], chunk=completion_chunk, closing=completion_closing, whole=completion_whole
    ),
    "/generate": replace(
        OF_SGLANG["/generate"],
        read=read_generate,
        chunk=generate_chunk,
        closing=dialects.generate_closing,
        whole=generate_whole,
    ),
}


def read_without_form(body: Body, known: dict[str, str]) -> Asked:
    """What verifies drafts knows no grammar (speculative/overlap_utils.py:35): a form is passed over in silence."""
    return dialects.read_chat({name: value for name, value in body.items() if name != "response_format"}, known)


WITHOUT_FORMS: dict[str, Dialect] = {
    **DIALECTS,
    "/v1/chat/completions": replace(DIALECTS["/v1/chat/completions"], read=read_without_form),
}
"""Of a server that speculates."""
