"""Values of sglang-jax's flags: what the real parser of 0.1.0rc0 does not take (dev/sglang-jax/try_values.py), the
operator refuses, and the emulator exits with 2."""

import argparse

from tests.contract import parsers
from tests.contract.test_sglang_jax import CAPTURES
from tests.support.jax_servers import BASELINE, JAX, server

from paceline.engines.sglang_jax.rules import flag_list
from paceline_emulator.sglang_jax import flags

OPTIONS = parsers.options(CAPTURES)
LISTED = flag_list("0.1.0rc0")


def test_every_option_is_listed() -> None:
    assert len(OPTIONS) == 126
    assert {option for row in OPTIONS for option in row["names"]} <= set(LISTED.flags)


def test_the_operator_refuses_what_the_real_parser_refuses() -> None:
    for row in OPTIONS:
        option = row["names"][0]
        for word in parsers.WORDS:
            args = (f"{option}={word}",)
            found = JAX.refusals(server(*args), (BASELINE,))
            refused = any(one.rule == "known-value" and one.path == "engine.args[0]" for one in found)
            assert LISTED.is_ours(LISTED.parse(args)[0]) or refused == (word not in row["takes"]), (option, word)


def test_the_emulator_takes_what_the_real_parser_takes() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    flags.add_options(parser)
    assert list(parsers.differing(parser, OPTIONS)) == []
