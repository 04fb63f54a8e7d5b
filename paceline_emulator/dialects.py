"""The three ways to ask for text: what is read from a request, and how an answer is written.

Shapes: captures of the real server (chat.json, completions_stream.txt, generate.json) and, for streamed chat,
`srt/entrypoints/openai/sse_utils.py` of 0.5.23. The answer's words need no escaping in JSON (prompts.WORDS).
"""

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from paceline_emulator import logprobs, structured
from paceline_emulator.positions import histogram
from paceline_emulator.prompts import Prompt, chat_prompt, in_form, prompt
from paceline_emulator.server import Job

Body = dict[str, Any]

END_OF_TURN = 151645
"""Token id that a natural end is reported to have matched."""
COMPLETION_DEFAULT, GENERATE_DEFAULT = 16, 128
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """`limit` None: as much as the context allows."""

    prompt: Prompt
    limit: int | None
    ignore_eos: bool
    streaming: bool
    usage: bool
    model: str
    logprobs: int | None = None
    """Alternatives asked for at each token; None: nothing of the kind."""
    spec_details: int = 0
    """Positions of which the answer is to tell what became of its drafts; 0: not asked for, or it does not draft."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """`read` raises ValueError for a body that makes no sense. `chunk` gets the tokens [start, stop)."""

    read: Callable[[Body, dict[str, str]], Asked]
    chunk: Callable[[Asked, Job, int, int], bytes]
    closing: Callable[[Asked, Job], bytes]
    whole: Callable[[Asked, Job], Any]
    error: Callable[[str, str, int], bytes]
    check: Callable[[Body], None] = lambda _: None
    """Raises IgnoredError for a form that the engine's grammar does not enforce."""


def read_chat(body: Body, known: dict[str, str]) -> Asked:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(message, dict) for message in messages):
        raise ValueError("Messages cannot be empty.")
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    prompt, schema = chat_prompt(messages, known, body.get("tools")), structured.asked(body)
    if schema is not None:
        prompt = in_form(prompt, structured.written(schema, prompt.digest))
    return replace(_asked(body, prompt, limit), logprobs=logprobs.asked(body))


def read_completion(body: Body, known: dict[str, str]) -> Asked:
    limit = body.get("max_tokens", COMPLETION_DEFAULT)
    asked = _asked(body, _plain_prompt(body.get("prompt"), known), limit)
    return replace(asked, logprobs=logprobs.asked_of_a_completion(body))


def read_generate(body: Body, known: dict[str, str]) -> Asked:
    text = body.get("text") if body.get("text") is not None else body.get("input_ids")
    sampling = body.get("sampling_params") or {}
    asked = _asked({**sampling, "stream": body.get("stream")}, _plain_prompt(text, known), None)
    return Asked(
        prompt=asked.prompt,
        limit=_limit(sampling.get("max_new_tokens", GENERATE_DEFAULT)),
        ignore_eos=asked.ignore_eos,
        streaming=asked.streaming,
        usage=False,
        model="",
    )


def _asked(body: Body, found: Prompt, limit: Any) -> Asked:
    options = body.get("stream_options") or {}
    return Asked(
        prompt=found,
        limit=_limit(limit),
        ignore_eos=bool(body.get("ignore_eos")),
        streaming=bool(body.get("stream")),
        usage=bool(options.get("include_usage")),
        model=str(body.get("model") or "default"),
    )


def _limit(limit: Any) -> int | None:
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ValueError(f"max_new_tokens must be at least 1, got {limit}.")
    return limit


def _plain_prompt(text: Any, known: dict[str, str]) -> Prompt:
    """Text, token ids, or a list with one of those."""
    if isinstance(text, list) and len(text) == 1 and isinstance(text[0], (str, list)):
        text = text[0]
    if isinstance(text, list) and text and all(isinstance(token, int) for token in text):
        tokens = prompt(json.dumps(text), json.dumps(text), known)
        return replace(tokens, tokens=len(text), begins=((tokens.digest, len(text)),))
    if not isinstance(text, str) or not text:
        raise ValueError("Prompt cannot be empty, and an emulated server takes one at a time.")
    return prompt(text, text, known)


def _text(job: Job, start: int, stop: int) -> str:
    ends = job.finish == "stop" and stop == job.request.produced
    return job.prompt.text(start, stop, ends=ends) if stop > start else ""


def _usage(job: Job) -> Body:
    return {
        "prompt_tokens": job.request.prompt_tokens,
        "total_tokens": job.request.prompt_tokens + job.request.produced,
        "completion_tokens": job.request.produced,
        "reasoning_tokens": 0,
    }


def _whole_usage(job: Job) -> Body:
    return {**_usage(job), "prompt_tokens_details": None, "completion_tokens_details": None}


def _spec_details(asked: Asked, job: Job) -> Body:
    """`sglext` of a chat with return_spec_tokens_details: `SpecTokensDetails` of protocol.py, filled in by
    `tokenizer_manager.py:3138` of 0.5.23."""
    calls = job.request.verify_calls
    if not (asked.spec_details and calls):
        return {}
    accepted = job.request.accepted - calls
    details = {
        "spec_accept_rate": accepted / max(1, job.request.proposed),
        "spec_accept_length": job.request.produced / calls,
        "spec_cap_length": 0.0,
        "spec_block_accept_length": 0.0,
        "spec_num_correct_drafts": accepted,
        "spec_num_proposed_drafts": job.request.proposed,
        "spec_verify_ct": calls,
        "spec_correct_drafts_histogram": histogram(accepted, calls, asked.spec_details),
        "spec_cap_lens_histogram": [],
    }
    return {"sglext": {"spec_tokens_details": details}}


def _matched(job: Job) -> int | None:
    return END_OF_TURN if job.finish == "stop" else None


def _quoted(value: str | None) -> str:
    return json.dumps(value)


def _sse(value: Body) -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


def _weights(job: Job) -> Body:
    whole = {"version": "default", "start": 0, "end": job.request.produced}
    return {"weight_version": "default", "weight_versions": [whole]}


def chat_chunk(asked: Asked, job: Job, start: int, stop: int) -> bytes:
    """The role comes in a chunk of its own before the first text."""
    head = (
        f'data: {{"id":"{job.request.id}","object":"chat.completion.chunk","created":{int(job.began_at)},'
        f'"model":{_quoted(asked.model)},"choices":[{{"index":0,"delta":{{"reasoning_content":null,'
    )
    tail = '"},"logprobs":null,"finish_reason":null,"matched_stop":null}]}\n\n'
    role = f'{head}"role":"assistant","content":"{tail}' if start == 0 else ""
    text = _text(job, start, stop)
    escaped = json.dumps(text)[1:-1] if job.prompt.written else text
    return f'{role}{head}"content":"{escaped}{tail}'.encode()


def chat_closing(asked: Asked, job: Job) -> bytes:
    frame: Body = {
        "id": job.request.id,
        "object": "chat.completion.chunk",
        "created": int(job.began_at),
        "model": asked.model,
    }
    choice = {
        "index": 0,
        "delta": {"reasoning_content": None},
        "logprobs": None,
        "finish_reason": job.finish,
        "matched_stop": _matched(job),
    }
    details = _spec_details(asked, job)
    told = _sse({**frame, "choices": [], "usage": None, **details}) if details else b""
    usage = _sse({**frame, "choices": [], "usage": _whole_usage(job)}) if asked.usage else b""
    return _sse({**frame, "choices": [choice]}) + told + usage + DONE


def chat_whole(asked: Asked, job: Job) -> Body:
    return {
        "id": job.request.id,
        "object": "chat.completion",
        "created": int(job.began_at),
        "model": asked.model,
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": _text(job, 0, job.request.produced),
                    "reasoning_content": None,
                },
                "logprobs": chat_logprobs(asked, job),
                "finish_reason": job.finish,
                "matched_stop": _matched(job),
            }
        ],
        "usage": _whole_usage(job),
        "metadata": _weights(job),
        **_spec_details(asked, job),
    }


def chat_logprobs(asked: Asked, job: Job) -> Body | None:
    """Of a whole answer: streamed ones have none here."""
    if asked.logprobs is None:
        return None
    return logprobs.content(job.prompt, job.request.produced, asked.logprobs, job.fork_gap, ends=job.finish == "stop")


def completion_chunk(asked: Asked, job: Job, start: int, stop: int) -> bytes:
    last = job.finish is not None and stop == job.request.produced
    matched = _matched(job) if last else None
    return (
        f'data: {{"id":"{job.request.id}","object":"text_completion","created":{int(job.began_at)},'
        f'"model":{_quoted(asked.model)},"choices":[{{"index":0,"text":"{_text(job, start, stop)}","logprobs":null,'
        f'"finish_reason":{_quoted(job.finish if last else None)},"matched_stop":{json.dumps(matched)}}}],'
        '"usage":null}\n\n'
    ).encode()


def completion_closing(asked: Asked, job: Job) -> bytes:
    usage = {
        "id": job.request.id,
        "object": "text_completion",
        "created": int(job.began_at),
        "model": asked.model,
        "choices": [],
        "usage": _usage(job),
    }
    return (_sse(usage) if asked.usage else b"") + DONE


def completion_whole(asked: Asked, job: Job) -> Body:
    return {
        "id": job.request.id,
        "object": "text_completion",
        "created": int(job.began_at),
        "model": asked.model,
        "choices": [
            {
                "index": 0,
                "text": _text(job, 0, job.request.produced),
                "logprobs": None,
                "finish_reason": job.finish,
                "matched_stop": _matched(job),
            }
        ],
        "usage": _whole_usage(job),
        "metadata": _weights(job),
    }


def generate_chunk(asked: Asked, job: Job, start: int, stop: int) -> bytes:
    """Everything so far, each time: /generate streams cumulatively."""
    return _sse(_generated(job, stop))


def generate_closing(asked: Asked, job: Job) -> bytes:
    return DONE


def generate_whole(asked: Asked, job: Job) -> Body:
    return _generated(job, job.request.produced)


def _generated(job: Job, stop: int) -> Body:
    request, now = job.request, time.time()
    done = job.finish is not None and stop == request.produced
    speculated = request.verify_calls > 0
    first = (job.first_token or job.arrived) - job.arrived
    return {
        "text": _text(job, 0, stop),
        "output_ids": [job.prompt.token(index) for index in range(stop)],
        "meta_info": {
            "id": request.id,
            "finish_reason": _finish(job) if done else None,
            "prompt_tokens": request.prompt_tokens,
            "weight_version": "default",
            "num_retractions": 0,
            "storage_prefetch_wait": 0.0,
            "storage_staging_wait": 0.0,
            "forward_entry_time": job.began_at,
            "prefill_finished_time": job.began_at + first,
            "queue_time": 0.0,
            "reasoning_tokens": 0,
            "completion_tokens": stop,
            "cached_tokens": request.cached_tokens,
            "weight_versions": [{"version": "default", "start": 0, "end": stop}],
            "cached_tokens_details": None,
            "dp_rank": None,
            **(
                {"spec_verify_ct": request.verify_calls, "spec_accept_length": stop / request.verify_calls}
                if speculated
                else {}
            ),
            "e2e_latency": now - job.began_at,
            "request_received_ts": job.began_at,
            "first_token_latency": first,
            "api_server_dispatch_finish_ts": job.began_at,
            "request_finished_ts": now,
            "decode_throughput": (stop - 1) / max(now - job.began_at - first, 1e-9),
            "response_sent_to_client_ts": now,
        },
    }


def _finish(job: Job) -> Body:
    match job.finish:
        case "stop":
            return {"type": "stop", "matched": END_OF_TURN}
        case "length":
            return {"type": "length", "length": job.request.length}
        case _:
            return {"type": "abort", "message": "Aborted", "status_code": None, "err_type": None}


def openai_error(message: str, kind: str, code: int) -> bytes:
    """As an event in a stream."""
    return _sse({"error": {"object": "error", "message": message, "type": kind, "param": None, "code": code}})


def refused_in_stream(body: Body, message: str) -> bytes:
    """What a scheduler refuses, when the answer's status has been sent: an error and, all the same, a usage."""
    none = {"prompt_tokens_details": None, "reasoning_tokens": 0, "completion_tokens_details": None}
    usage = {"prompt_tokens": 1, "total_tokens": 2, "completion_tokens": 1, **none}
    frame = {"id": uuid.uuid4().hex, "object": "chat.completion.chunk", "created": int(time.time())}
    counted = _sse({**frame, "model": body.get("model"), "choices": [], "usage": usage})
    wanted = (body.get("stream_options") or {}).get("include_usage")
    return openai_error(message, "BAD_REQUEST", 400) + (counted if wanted else b"") + DONE


def generate_error(message: str, kind: str, code: int) -> bytes:
    return _sse({"error": {"message": message, "type": kind, "code": code, "retryable": False}})


DIALECTS: dict[str, Dialect] = {
    "/v1/chat/completions": Dialect(
        read=read_chat,
        chunk=chat_chunk,
        closing=chat_closing,
        whole=chat_whole,
        error=openai_error,
        check=structured.check,
    ),
    "/v1/completions": Dialect(
        read=read_completion,
        chunk=completion_chunk,
        closing=completion_closing,
        whole=completion_whole,
        error=openai_error,
    ),
    "/generate": Dialect(
        read=read_generate,
        chunk=generate_chunk,
        closing=generate_closing,
        whole=generate_whole,
        error=generate_error,
    ),
}
