"""What is read of a request, and vLLM's words where it refuses one. Captured: tests/contract/captures/vllm."""

import json
from collections.abc import Mapping
from typing import Any

from paceline_emulator.dialects import Asked, Body
from paceline_emulator.vllm.answers import Kind
from paceline_emulator.vllm.launch import Launch

LONGEST_SALT = 128
FORBIDDEN = frozenset("@/\\\0")
INVALID = "Bad Request"
"""The type of what pydantic refuses."""


class Refused(Exception):  # noqa: N818
    """An answer that is an error: vLLM's words, its type, the field that it blames and its status."""

    def __init__(self, message: str, param: str | None, kind: str = "BadRequestError", code: int = 400) -> None:
        super().__init__(message)
        self.said = {"error": {"message": message, "type": kind, "param": param, "code": code}}
        self.code = code


def read(raw: str, kind: Kind, known: dict[str, str], launch: Launch) -> tuple[Asked, int, str | None]:
    """The request, its output tokens at most and its salt; Refused in vLLM's order: field, model, length, sampling."""
    body = _body(raw, kind.needs)
    salt = _salt(body)
    try:
        asked = kind.read(body, known)
    except (ValueError, AttributeError) as problem:
        raise Refused(str(problem), None) from None
    if asked.model not in (there := (*launch.names, *launch.adapters)):
        aliases = ", ".join(there)
        message = f"The model `{asked.model}` does not exist. Valid aliases: {aliases}."
        raise Refused(message, "model", "NotFoundError", 404)
    limit = _limit(asked, launch.context)
    _sampling(body, launch)
    _tools(body, launch)
    return asked, limit, salt


def _body(raw: str, needed: str) -> Body:
    try:
        body = json.loads(raw)
    except json.JSONDecodeError as problem:
        at = f"body.{problem.pos}"
        said = {"type": "json_invalid", "loc": at, "msg": "JSON decode error", "input": "<dict of 0 items>"}
        raise _invalid({**said, "ctx": {"error": problem.msg}}) from None
    if not isinstance(body, dict):
        said = {"type": "model_attributes_type", "loc": "body", "msg": "Input should be a valid dictionary"}
        raise _invalid({**said, "input": f"<{type(body).__name__}>"})
    if needed not in body:
        given = f"<dict of {len(body)} items>"
        raise _invalid({"type": "missing", "loc": f"body.{needed}", "msg": "Field required", "input": given})
    return body


def _invalid(said: Mapping[str, Any]) -> Refused:
    return Refused(f"1 validation error:\n  {dict(said)!r}", said["loc"], INVALID)


def _salt(body: Body) -> str | None:
    """`entrypoints/generate/base/protocol.py:42`."""
    salt = body.get("cache_salt")
    if salt is None:
        return None
    wrong = None
    if not isinstance(salt, str) or not salt:
        wrong = "be a non-empty string if provided."
    elif len(salt) > LONGEST_SALT or FORBIDDEN & set(salt):
        wrong = f"be at most {LONGEST_SALT} characters and must not contain '@', '/', '\\\\', or NUL."
    if wrong:
        raise Refused(f"Parameter 'cache_salt' must {wrong} (parameter=cache_salt)", "cache_salt")
    return str(salt)


def _limit(asked: Asked, context: int) -> int:
    if (asked.limit or 0) > context:
        raise Refused(
            f"max_tokens={asked.limit} cannot be greater than max_model_len={context}. Please request fewer output "
            f"tokens. (parameter=max_tokens, value={asked.limit})",
            "max_tokens",
        )
    room = context - asked.prompt.tokens
    if room <= 0:  # renderers/params.py:544
        raise Refused(
            f"This model's maximum context length is {context} tokens. However, your prompt contains "
            f"{asked.prompt.tokens} input tokens, which exceeds this limit even without any output tokens. Please "
            f"reduce the length of the input prompt. (parameter=input_tokens, value={asked.prompt.tokens})",
            "input_tokens",
        )
    return min(asked.limit or room, room)  # entrypoints/serve/utils/api_utils.py:253: an answer ends with the context


def _sampling(body: Body, launch: Launch) -> None:
    """`sampling_params.py:1193`: at a temperature of 0 min_p is dropped before."""
    if launch.speculation is None:
        return
    temperature = 1.0 if body.get("temperature") is None else float(body["temperature"])
    if (body.get("min_p") and temperature) or body.get("logit_bias"):
        message = "The min_p and logit_bias sampling parameters are not yet supported with speculative decoding."
        raise Refused(message, None)


def _tools(body: Body, launch: Launch) -> None:
    """Where tools are given, `auto` is the default (`entrypoints/openai/chat_completion/protocol.py`)."""
    by_itself = bool(body.get("tools")) and body.get("tool_choice") in (None, "auto")
    if by_itself and not (launch.args["enable_auto_tool_choice"] and launch.args["tool_call_parser"]):
        message = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
        raise Refused(message, None)
