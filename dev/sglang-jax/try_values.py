"""Which values the real sglang-jax takes: `DIR/venv/bin/python dev/sglang-jax/try_values.py OUT.jsonl`.

It needs a directory as `make test-sglang-jax` has one. A row an option of its parser: names, choices, nargs, and which
of WORDS it takes; for tests/contract/captures/sglang_jax/parser.jsonl.
"""

import argparse
import json
import sys
from pathlib import Path

WORDS = (
    "", "None", "0", "7", "-1", "1.5", "-0.5", "1e3", "many", "auto", "2k", "1.5k", "2K", "1.5K", "2Ki", "true",
    "{}", "{a", "[1]", '{"a": 1}',
)  # fmt: skip
"""As dev/vllm/try_values.py."""


def main(out: Path) -> None:
    from sgl_jax.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser(add_help=False)
    ServerArgs.add_cli_args(parser)
    with out.open("w") as rows:
        for action in parser._actions:
            if action.option_strings and action.nargs != 0:
                takes = [word for word in WORDS if _taken(parser, action, word)]
                choices = None if action.choices is None else [*map(str, action.choices)]
                row = {"names": action.option_strings, "choices": choices, "nargs": action.nargs, "takes": takes}
                rows.write(json.dumps(row) + "\n")


def _taken(parser: argparse.ArgumentParser, action: argparse.Action, word: str) -> bool:
    try:
        parser._check_value(action, parser._get_value(action, word))
    except (argparse.ArgumentError, ValueError):
        return False
    return True


if __name__ == "__main__":
    main(Path(sys.argv[1]))
