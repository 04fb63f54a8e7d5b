"""The known releases, and the versions between them."""

import pytest
from tests.unit.engines.sglang.servers import PINNED, server, wide

from paceline.engines import ENGINES
from paceline.engines.release import release
from paceline.engines.sglang.versions import KNOWN, is_newer, known_release, neighbouring_releases

SGLANG = ENGINES["SGLang"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0.5.6", (0, 5, 6)),
        ("v0.5.6", (0, 5, 6)),
        ("0.5.6.post1", (0, 5, 6)),
        ("0.5.6rc1", (0, 5, 6)),
        ("0.5.23-cu129", (0, 5, 23)),
        ("nightly", None),
        ("5", None),
    ],
)
def test_a_version_is_compared_by_its_release(text: str, found: tuple[int, ...] | None) -> None:
    assert release(text) == found


@pytest.mark.parametrize(
    ("version", "known", "judged_by"),
    [
        ("0.4.5", "0.4.5", ("0.4.5",)),
        ("0.4.6.post5", "0.4.5", ("0.4.5", "0.5.6")),
        ("0.5.6", "0.5.6", ("0.5.6",)),
        ("0.5.9", "0.5.6", ("0.5.6", "0.5.17")),
        ("0.5.17", "0.5.17", ("0.5.17",)),
        ("0.5.22", "0.5.17", ("0.5.17", "0.5.23")),
        ("0.5.23", "0.5.23", ("0.5.23",)),
        ("0.5.24", "0.5.23", ("0.5.23",)),
        ("1.0.0", "0.5.23", ("0.5.23",)),
    ],
)
def test_a_version_is_treated_as_the_known_one_before_it(version: str, known: str, judged_by: tuple[str, ...]) -> None:
    assert known_release(version).version == known
    assert tuple(row.version for row in neighbouring_releases(version)) == judged_by


def test_numbers_are_not_compared_as_text() -> None:
    assert is_newer("0.5.100")
    assert not is_newer("0.5.9")


@pytest.mark.parametrize(
    ("target", "versions"),
    [
        ("LlamaForCausalLM", {"0.4.5", "0.5.6", "0.5.17", "0.5.23"}),
        ("Qwen3ForCausalLM", {"0.5.6", "0.5.17", "0.5.23"}),
        ("Qwen3MoeForCausalLM", {"0.5.6", "0.5.17", "0.5.23"}),
        ("MiniMaxM2ForCausalLM", {"0.5.6", "0.5.17", "0.5.23"}),
        ("Qwen3NextForCausalLM", {"0.5.17", "0.5.23"}),
        ("Gemma4ForConditionalGeneration", {"0.5.17", "0.5.23"}),
        ("Glm4MoeLiteForCausalLM", {"0.5.17", "0.5.23"}),
        ("MambaForCausalLM", set()),
    ],
)
def test_targets_with_an_eagle3_hook(target: str, versions: set[str]) -> None:
    has = {row.version for row in KNOWN if target in (SGLANG.eagle3_targets(row.version) or ())}
    assert has == versions


def test_hooks_of_a_version_that_is_not_known() -> None:
    """In between, those of either neighbour; of what is newer nothing can be said."""
    between = SGLANG.eagle3_targets("0.5.10")
    assert between is not None
    assert "Qwen3NextForCausalLM" in between
    assert SGLANG.eagle3_targets("0.6.0") is None


@pytest.mark.parametrize(
    ("version", "ready", "pages"),
    [
        ("0.4.5", "/health", ("/metrics", "/get_server_info")),
        ("0.5.6", "/health", ("/metrics", "/server_info")),
        ("0.5.17", "/health", ("/metrics", "/server_info")),
        ("0.5.23", "/ready", ("/metrics", "/server_info")),
    ],
)
def test_pages_by_version(version: str, ready: str, pages: tuple[str, ...]) -> None:
    assert SGLANG.ready_path(version) == ready
    assert SGLANG.probe(version).pages == pages


def test_a_health_check_that_generates_gets_the_time_for_it() -> None:
    assert [SGLANG.ready_answer_seconds(row.version) for row in KNOWN] == [2, 5, 5, 2]


def test_flags_that_were_renamed_are_taken_where_they_were() -> None:
    old = server(PINNED, "--cuda-graph-max-bs=64", version="0.5.6")
    assert SGLANG.refusals(old, (wide(),)) == ()
