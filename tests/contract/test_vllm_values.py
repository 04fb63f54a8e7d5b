"""Values of vLLM's options: what the real 0.33.0 takes, and how it ends where it does not (dev/vllm/try_values.py).

The operator refuses at the desk what the real parser refuses; the emulator ends as the real one does.
"""

import argparse
import json
import re
import traceback
from collections.abc import Sequence
from typing import Any

import pytest
from tests.contract import parsers
from tests.contract.vllm_facts import CAPTURES
from tests.support.vllm_server import BASE, server

from paceline.engines import ENGINES
from paceline.engines.log_tail import failure_line
from paceline.engines.vllm.arguments import FLAGS
from paceline_emulator import settings
from paceline_emulator.vllm import flags, launch

OPTIONS = parsers.options(CAPTURES)
VALUES = [json.loads(line) for line in (CAPTURES / "wrong_values.jsonl").read_text().splitlines()]
PARTS = frozenset(name for name, flag in FLAGS.flags.items() if flag.kind == "object")
A_KEY = '{"a": 1}'
"""No part of the configuration has a key of that name; which it has is not known here."""
LEFT_OUT = ("--distributed-executor-backend", "--hf-overrides", "--tokenizer", '{"moode": 3}')
"""A class by its name, changes of a model's configuration, a repository, a part's key: the emulator takes any."""
OTHER_WORDS = ("--chat-template", "--compilation-config", "--structured-outputs-config")
"""Of these the emulator has the exit code, and other words."""


def name(row: dict[str, Any]) -> str:
    return " ".join(row.get("case") or row["names"])


# The parser


def test_every_option_is_captured() -> None:
    """But switches, which take no value, and the speculation's short cuts of 0.33.0."""
    captured = {option for row in OPTIONS for option in row["names"]}
    ours = {option for option, flag in FLAGS.flags.items() if flag.kind != "switch"}
    assert captured <= set(FLAGS.flags)
    assert ours - captured == set()


def test_the_operator_refuses_what_the_real_parser_refuses() -> None:
    """Of what is refused here as the value of a flag: other rules have other reasons."""
    for row in OPTIONS:
        option = row["names"][0]
        for word in words_for(option):
            found = ENGINES["vLLM"].refusals(server(f"{option}={word}"), (BASE,))
            ours = FLAGS.is_ours(FLAGS.parse((f"{option}={word}",))[0])
            refused = any(one.rule == "vllm-value" for one in found)
            assert ours or refused == (word not in row["takes"]), (option, word)


def test_the_emulator_takes_what_the_real_parser_takes() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    flags.add_options(parser)
    found = parsers.differing(parser, OPTIONS)
    assert [one for one in found if one.partition("=") not in {(part, "=", A_KEY) for part in PARTS}] == []


def words_for(option: str) -> Sequence[str]:
    return [word for word in parsers.WORDS if word != A_KEY or option not in PARTS]


# The configuration


@pytest.mark.parametrize("row", VALUES, ids=name)
def test_the_emulator_ends_as_the_real_one(
    row: dict[str, Any], target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By its exit code and by the line that tells why; or it serves."""
    if set(row["case"]) & set(LEFT_OUT):
        return
    code, said = tried(["serve", target, *row["case"]], capsys)
    assert code == row["code"], said
    if code != "served" and row["case"][0].partition(".")[0] not in OTHER_WORDS:
        assert alike(failure_line(said)) == alike(failure_line(row["tail"]))


def tried(argv: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int | str, str]:
    try:
        launch.resolve(flags.parse(argv), settings.read({}))
    except SystemExit as ended:
        return int(ended.code or 0), capsys.readouterr().err
    except Exception:
        return 1, traceback.format_exc()
    return "served", ""


def alike(line: str) -> str:
    """Without where a function lies, and what the program is called."""
    return re.sub(r"0x[0-9a-f]+|^vllm( serve)?: ", "", line)


def test_a_refusal_of_several_fields_names_each() -> None:
    """The user gave one of the two, which made the other what it is."""
    (row,) = (row for row in VALUES if row["case"] == ["--max-num-seqs", "-1"])
    assert failure_line(row["tail"]) == (
        "SchedulerConfig: max_num_batched_tokens: Input should be greater than or equal to 1; "
        "max_num_seqs: Input should be greater than or equal to 1"
    )
