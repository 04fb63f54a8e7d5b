"""The command line of the emulated vLLM, and how it ends, against captures of the real one and its wheel's options."""

import json
import re
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.contract import vllm_facts as facts
from tests.contract.vllm_running import EAGLE3, PATIENCE, Serve, Vllm

import paceline_emulator
from paceline.engines import probe as pages
from paceline.engines.log_tail import failure_line
from paceline.engines.vllm import rules
from paceline.engines.vllm.arguments import FLAGS
from paceline_emulator.vllm.flags import human_readable_int_or_auto

DATA = Path(paceline_emulator.__file__).parent / "vllm" / "data"
ENGINES = Path(pages.__file__).parent / "vllm/data"


def end(server: Vllm) -> tuple[int, str]:
    """Exit code and all that it said."""
    assert server.process.stderr
    said = server.process.stderr.read()
    return server.process.wait(PATIENCE), said


REFUSALS = [json.loads(line) for line in (facts.CAPTURES / "refusals.jsonl").read_text().splitlines()]
CODES = [json.loads(line) for line in (facts.CAPTURES / "exit_codes.jsonl").read_text().splitlines()]


def alike(line: str) -> str:
    """Without what another process, model or release of pydantic has other."""
    return re.sub(r"0x[0-9a-f]+|^\S+( serve)?: ", "", line)


# The list of options


def test_the_list_has_every_option_of_the_wheel() -> None:
    """321 with the model itself: 5 of the top, 62 of the front end, 254 of the engine."""
    listed = json.loads((ENGINES / "flags-0.33.0.json").read_text())["flags"]
    assert len(listed) == 321
    for name in ("-tp", "--no-enable-prefix-caching", "--disable-prefix-caching", "-sc", "--spec-tokens"):
        assert name in FLAGS.flags
    for name in ("--mem-fraction-static", "--num-speculative-tokens", "--speculative-model"):
        assert name not in FLAGS.flags


def test_operator_and_emulator_have_the_same_options() -> None:
    mine, theirs = (
        [flag["names"] for flag in json.loads(path.read_text())["flags"]]
        for path in (ENGINES / "flags-0.33.0.json", DATA / "flags_0.33.0.json")
    )
    assert mine == theirs


def test_methods() -> None:
    assert set(rules.METHODS.values()) == set(facts.METHODS)
    assert not set(rules.METHODS.values()) & set(facts.ABSENT)


# Starting and ending


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--mem-fraction-static", "0.8"), "unrecognized arguments: --mem-fraction-static 0.8"),
        (("--max-num-seqs", "many"), "argument --max-num-seqs: invalid int value: 'many'"),
        (("--speculative-config", "{method"), "-sc: Value {method cannot be converted to <function loads at 0x"),
    ],
)
def test_an_argument_that_argparse_refuses_exits_with_2(serve: Serve, args: tuple[str, ...], message: str) -> None:
    code, said = end(serve(*args))
    assert code == 2
    assert message in failure_line(said)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"method": "eagle3", "model": "HEAD"}, "num_speculative_tokens must be provided"),
        ({"method": "eagle3", "num_speculative_tokens": 4}, "without speculative model"),
        ({**EAGLE3, "tensor_parallel_size": 2}, "pass 'draft_tensor_parallel_size' instead"),
        ({**EAGLE3, "num_steps": 4}, "SpeculativeConfig: num_steps: Unexpected keyword argument"),
        ({**EAGLE3, "num_speculative_tokens": 0}, "num_speculative_tokens: Input should be greater than 0"),
        ({**EAGLE3, "method": "medusa"}, "Unsupported speculative method: 'medusa'"),
    ],
)
def test_a_configuration_that_vllm_refuses_exits_with_1(serve: Serve, said: dict[str, Any], message: str) -> None:
    code, log = end(serve(speculative=said))
    assert code == 1
    assert message in failure_line(log)


@pytest.mark.parametrize("case", CODES, ids=lambda case: case["case"][1])
def test_it_exits_with_the_code_of_the_real_one(serve: Serve, case: dict[str, Any]) -> None:
    flag, value = (word.replace("models/eagle3", "HEAD").replace("99999", "999999") for word in case["case"])
    spoken = json.loads(value) if flag == "--speculative-config" and value.endswith("}") else None
    code, _ = end(serve(speculative=spoken) if spoken else serve(flag, value))
    assert code == case["code"]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case["case"][1])
def test_it_ends_with_the_words_of_the_real_one(serve: Serve, case: dict[str, Any]) -> None:
    """To the very last line, which is pydantic's link where a value is refused."""
    flag, value = case["case"]
    code, said = end(serve(flag, value))
    assert code == case["code"]
    assert alike(failure_line(said)) == alike(failure_line(case["tail"]))
    assert alike(said.strip().splitlines()[-1]) == alike(case["tail"].strip().splitlines()[-1])


def test_options_as_people_write_them(serve: Serve) -> None:
    server = serve(
        "--speculative_config.method=ngram", "--speculative-config.num_speculative_tokens", "3", "-tp", "2", "-O3"
    )
    assert server.process.stderr
    asked, line = server.process.stderr.readline(), server.process.stderr.readline()
    assert "non-default args: {" in asked
    assert "SpeculativeConfig(method='ngram', model=None, num_spec_tokens=3)" in line
    assert "tensor_parallel_size=2" in line


def test_sizes() -> None:
    """`k` is a thousand and `K` is 1024, and what vLLM is to find out is -1: utils/argparse_utils.py."""
    read = [human_readable_int_or_auto(text) for text in ("8192", "32k", "32K", "1M", "auto")]
    assert read == [8192, 32000, 32768, 1048576, -1]


def test_it_ends_at_once_when_told(serve: Serve) -> None:
    """--shutdown-timeout is 0."""
    server = serve().ready()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(5) == 0


def test_told_for_how_long_it_finishes_its_requests(serve: Serve) -> None:
    """As vLLM does with mode=drain (v1/engine/core.py:1703-1794)."""
    server = serve("--shutdown-timeout", "60").ready()
    answers: list[tuple[int, str]] = []
    asking = threading.Thread(target=lambda: answers.append(server.chat(max_tokens=200, ignore_eos=True)))
    asking.start()
    while not server.total("vllm:num_requests_running"):
        time.sleep(0.01)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(PATIENCE) == 0
    asking.join()
    assert json.loads(answers[0][1])["usage"]["completion_tokens"] == 200


def test_a_dead_engine_is_no_error_of_the_process(serve: Serve) -> None:
    """Code 0 is no success (entrypoints/launchers/launcher.py:314)."""
    server = serve(PACELINE_EMULATE_DIE_AFTER_REQUESTS="1").ready()
    with suppress(OSError):
        server.chat()
    code, said = end(server)
    real = (facts.CAPTURES / "engine_killed.log").read_text()
    assert (code, failure_line(said)) == (0, "torch.OutOfMemoryError: CUDA out of memory.")
    assert [re.sub(r"\d+", "", log.splitlines()[-1]) for log in (said, real)] == [
        "INFO:     Finished server process []"
    ] * 2
