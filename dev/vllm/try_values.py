"""What the real vLLM says to values of its options: `DIR/venv/bin/python dev/vllm/try_values.py MODEL OUT`.

It needs a directory as `make test-vllm` has one (DIR/models/target for MODEL). vLLM is imported once, and every case is
its own process from there: `vllm serve MODEL CASE…` up to where the engine would be started. Written are, for the tests
of the contract (tests/contract/captures/vllm):

    OUT/wrong_values.jsonl   a case, its exit code ("served": accepted), and the last that it said
    OUT/parser.jsonl         an option of the parser: its names, choices and nargs, and which of WORDS it takes
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

CASES: tuple[tuple[str, ...], ...] = (
    ("--kv-cache-dtype", "fp99"),
    ("--kv-cache-dtype", "fp8"),
    ("--dtype", "fp99"),
    ("--load-format", "nonsense"),
    ("--quantization", "nonsense"),
    ("--tokenizer-mode", "nonsense"),
    ("--model-impl", "nonsense"),
    ("--runner", "nonsense"),
    ("--scheduling-policy", "lifo"),
    ("--distributed-executor-backend", "nonsense"),
    ("--attention-backend", "nonsense"),
    ("--prefix-caching-hash-algo", "md5"),
    ("--uvicorn-log-level", "loud"),
    ("--max-model-len", "many"),
    ("--max-model-len", "None"),
    ("--max-model-len", "auto"),
    ("--max-model-len", "1.5k"),
    ("--max-model-len", "1.5K"),
    ("--max-model-len", "2Ki"),
    ("--max-model-len", "0"),
    ("--max-model-len", "-5"),
    ("--max-num-seqs", "1.5"),
    ("--max-num-seqs", "None"),
    ("--max-num-seqs", "0"),
    ("--max-num-seqs", "-1"),
    ("--max-num-batched-tokens", "8Q"),
    ("--max-num-batched-tokens", "2k"),
    ("--max-num-batched-tokens", "0"),
    ("--max-num-batched-tokens", "4"),
    ("--gpu-memory-utilization", "high"),
    ("--gpu-memory-utilization", "1.5"),
    ("--gpu-memory-utilization", "0"),
    ("--gpu-memory-utilization", "None"),
    ("--block-size", "many"),
    ("--block-size", "7"),
    ("--block-size", "0"),
    ("--max-logprobs", "many"),
    ("--tensor-parallel-size", "0"),
    ("--pipeline-parallel-size", "0"),
    ("--data-parallel-size", "0"),
    ("--optimization-level", "9"),
    ("-O9",),
    ("--compilation-config", "{mode"),
    ("--compilation-config", '{"mode": 9}'),
    ("--compilation-config", '{"moode": 3}'),
    ("--structured-outputs-config", '{"backend": "nonsense"}'),
    ("--structured-outputs-config.backend", "nonsense"),
    ("--structured-outputs-config.backend", "xgrammar"),
    ("--limit-mm-per-prompt", "image"),
    ("--hf-overrides", "{a"),
    ("--override-generation-config", "{min_p"),
    ("--generation-config", "nowhere"),
    ("--tokenizer", "nowhere"),
    ("--chat-template", "nowhere.jinja"),
    ("--enable-auto-tool-choice",),
    ("--enable-auto-tool-choice", "--tool-call-parser", "nonsense"),
    ("--reasoning-parser", "nonsense"),
    ("--lora-modules", "sql"),
    ("--lora-modules", "sql=nowhere"),
    ("--enable-lora", "--max-lora-rank", "7"),
    ("--enable-lora", "--max-loras", "0"),
    ("--enforce-eager", "true"),
    ("--shutdown-timeout", "soon"),
    ("--shutdown-timeout", "-1"),
    ("--seed", "None"),
)
WORDS = (
    "", "None", "0", "7", "-1", "1.5", "-0.5", "1e3", "many", "auto", "2k", "1.5k", "2K", "1.5K", "2Ki", "true",
    "{}", "{a", "[1]", '{"a": 1}',
)  # fmt: skip
LAST = 8
"""Lines of what a case said; of one that is served none."""
SERVED = 77


def main(model: str, out: Path) -> None:
    import vllm.entrypoints.cli.main  # takes a minute, and is what all cases share
    import vllm.entrypoints.cli.serve
    import vllm.entrypoints.openai.api_server
    from vllm.v1.engine.async_llm import AsyncLLM

    def served(*_: object, **__: object) -> NoReturn:
        os._exit(SERVED)

    AsyncLLM.from_vllm_config = AsyncLLM.__init__ = served
    prefix = str(Path(sys.prefix).parent)
    (out / "parser.jsonl").write_text("".join(json.dumps(row) + "\n" for row in _parser()))
    with (out / "wrong_values.jsonl").open("w") as rows:
        for case in CASES:
            code, said = _tried(vllm.entrypoints.cli.main.main, ["vllm", "serve", model, "--port", "31190", *case])
            end = "served" if code == SERVED else code
            tail = "" if end == "served" else "\n".join(said.strip().splitlines()[-LAST:])
            rows.write(json.dumps({"case": case, "code": end, "tail": tail.replace(prefix, "DIR")}) + "\n")
            rows.flush()


def _parser() -> Iterator[dict[str, object]]:
    """As argparse would take a value; a switch takes none."""
    from vllm.entrypoints.common.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = make_arg_parser(FlexibleArgumentParser(add_help=False))
    for action in parser._actions:
        if action.option_strings and action.nargs != 0:
            takes = [word for word in WORDS if _taken(parser, action, word)]
            choices = None if action.choices is None else [*map(str, action.choices)]
            yield {"names": action.option_strings, "choices": choices, "nargs": action.nargs, "takes": takes}


def _taken(parser: argparse.ArgumentParser, action: argparse.Action, word: str) -> bool:
    try:
        parser._check_value(action, parser._get_value(action, word))
    except argparse.ArgumentError:
        return False
    return True


def _tried(program: object, argv: list[str]) -> tuple[int, str]:
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if not child:
            for descriptor in (1, 2):
                os.dup2(said.fileno(), descriptor)
            sys.argv = argv
            code = 1
            try:
                program()  # type: ignore[operator]
                code = 0
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 1
            except BaseException:
                sys.excepthook(*sys.exc_info())
            sys.stderr.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        said.seek(0)
        return os.waitstatus_to_exitcode(status), said.read().decode(errors="replace")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
