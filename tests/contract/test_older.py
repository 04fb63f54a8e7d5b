"""Older releases, emulated: their own flags, pages and metrics, as far as an operator can tell them apart."""

from pathlib import Path

import pytest
from tests.support.running import emulated, refused, tree

from paceline.engines import ENGINES, Scrape
from paceline.engines.sglang.flags_by_release import flags as listed
from paceline_emulator import flags
from paceline_emulator.older import SURFACES

SGLANG = ENGINES["SGLang"]
OLDER = ("0.4.5", "0.5.6")
CHAT = {
    "model": "pair",
    "messages": [{"role": "user", "content": "Write a function that adds two numbers."}],
    "max_tokens": 64,
    "ignore_eos": True,
}


@pytest.mark.parametrize("version", SURFACES)
def test_both_read_the_same_flags_in_the_wheel(version: str) -> None:
    """The operator's lists are read by dev/sglang/extract_flags.py, the emulator's have another origin: `source`."""
    theirs = {name for action in flags.parser(version)._actions for name in action.option_strings}
    assert set(listed(version)) == theirs - {"-h", "--help"}


@pytest.mark.parametrize(
    ("version", "lacks"),
    [("0.4.5", {"/ready", "/server_info", "/model_info", "/v1/loads"}), ("0.5.6", {"/ready", "/v1/loads"})],
)
def test_pages_that_came_later_are_not_there(version: str, lacks: set[str], target: str, log: Path) -> None:
    pages = ("/ready", "/server_info", "/get_server_info", "/model_info", "/get_model_info", "/v1/loads", "/v1/models")
    with emulated(target, log, PACELINE_EMULATE_VERSION=version) as server:
        assert {path for path in pages if server.get(path).status == 404} == lacks
        assert server.get("/get_server_info").json["version"] == f"{version}+emulated"


def test_health_of_0_4_5_says_yes_before_anything_is_ready(target: str, log: Path) -> None:
    with emulated(target, log, PACELINE_EMULATE_VERSION="0.4.5") as server:
        assert server.get("/health").seconds < 0.5
    with emulated(target, log, PACELINE_EMULATE_VERSION="0.5.6") as server:
        assert server.get("/health").seconds > 1


@pytest.mark.parametrize("version", OLDER)
def test_a_flag_that_came_later_ends_the_server(version: str, target: str, log: Path) -> None:
    code, said = refused(target, log, "--speculative-adaptive", PACELINE_EMULATE_VERSION=version)
    assert (code, "unrecognized arguments: --speculative-adaptive" in said) == (2, True)


def test_a_release_that_is_not_known_is_none(target: str, log: Path) -> None:
    code, said = refused(target, log, PACELINE_EMULATE_VERSION="0.5.7")
    assert (code, said) == (1, "PACELINE_EMULATE_VERSION is '0.5.7', not one of 0.4.5, 0.5.6, 0.5.23\n")


@pytest.mark.parametrize("version", OLDER)
def test_the_operators_probe_reads_it(version: str, target: str, head: str, log: Path) -> None:
    """The acceptance length, and nothing that this release does not count."""
    probe = SGLANG.probe(version)

    def scrape() -> Scrape:
        return Scrape(pages={path: server.get(path).text for path in probe.pages})

    flags = ("--served-model-name", "pair", "--decode-log-interval", "10", *tree(head, 3, 1, 4))
    with emulated(target, log, *flags, PACELINE_EMULATE_VERSION=version) as server:
        assert server.get(SGLANG.ready_path(version)).status == 200
        before = scrape()
        assert server.post("/v1/chat/completions", CHAT).status == 200
        seen = probe.speculation(before, scrape())
    assert seen.accept_length is not None
    assert 1 < seen.accept_length <= 4
    unseen = {"0.4.5": ("verify_calls", "retractions"), "0.5.6": ("verify_calls",)}[version]
    assert probe.unseen == (*unseen, "accepted_at")
    assert {"verify_calls": seen.verify_calls, "retractions": seen.retractions} == {
        "verify_calls": None,
        "retractions": None if "retractions" in unseen else 0,
    }
    resolved = probe.resolved(before)
    assert {key for key in SGLANG.compared if key not in resolved} == set()
    assert (resolved["speculative_num_steps"], resolved["speculative_eagle_topk"]) == (3, 1)
