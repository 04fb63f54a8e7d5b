"""How an arm becomes an SGLang process, what is refused before it does, and what it must then say of itself."""

from dataclasses import replace

import pytest
from tests.unit.render.example import arm, pool, server

from paceline.core import Arm, Draft, Server
from paceline.engines import ENGINES, Refusal
from paceline.engines.sglang import COMPARED, OWNED, flag_name, flag_value

SGLANG = ENGINES["SGLang"]
HEAD = f"/models/hub/models--thoughtworks--Qwen3-Coder-Next-Eagle3/snapshots/{'2' * 40}"
TARGET = f"/models/hub/models--Qwen--Qwen3-Coder-Next/snapshots/{'1' * 40}"


def with_args(*args: str) -> Server:
    return replace(server(), engine=replace(server().engine, args=args))


def refused(*args: str) -> list[str]:
    found = SGLANG.refusals(with_args("--attention-backend=triton", *args), pool().spec.arms)
    return [said(refusal) for refusal in found]


def said(refusal: Refusal) -> str:
    at = f"{refusal.arm}: " if refusal.arm else ""
    return f"{at}{refusal.path}: {refusal.message}"


# argv


def test_the_flags_that_were_published_are_all_there() -> None:
    """The server of seeds/002: tp 4, the triton backend, remote code trusted, the tree 3/4/8."""
    argv = SGLANG.argv(server(), arm("wide"))
    published = {
        "--model-path": TARGET,
        "--speculative-algorithm": "EAGLE3",
        "--speculative-draft-model-path": HEAD,
        "--speculative-num-steps": "3",
        "--speculative-num-draft-tokens": "8",
        "--speculative-eagle-topk": "4",
        "--tp-size": "4",
        "--attention-backend": "triton",
        "--port": "30000",
    }
    assert {flag: flag_value(argv, flag) for flag in published} == published
    assert "--trust-remote-code" in argv


def test_the_whole_argv_of_the_baseline() -> None:
    assert SGLANG.argv(server(), arm("baseline")) == (
        "python3", "-m", "sglang.launch_server",
        "--model-path", TARGET,
        "--served-model-name", "qwen3-coder-next",
        "--host", "0.0.0.0",
        "--port", "30000",
        "--tp-size", "4",
        "--trust-remote-code",
        "--enable-metrics",
        "--random-seed", "0",
        "--decode-log-interval", "10",
        "--max-running-requests", "48",
        "--attention-backend=triton",
    )  # fmt: skip


def test_an_arm_adds_its_speculation_and_its_own_arguments_and_changes_nothing_else() -> None:
    baseline, wide = (
        SGLANG.argv(server(), arm("baseline")),
        SGLANG.argv(server(), replace(arm("wide"), args=("--x=1",))),
    )
    added = wide[len(baseline) - 1 : -2]
    assert wide == (*baseline[:-1], *added, "--attention-backend=triton", "--x=1")
    assert all(flag.startswith("--speculative-") for flag in added[::2])


def test_an_algorithm_without_a_head_names_none() -> None:
    argv = SGLANG.argv(server(), Arm(name="ngram", draft=Draft(algorithm="NGRAM")))
    assert flag_value(argv, "--speculative-algorithm") == "NGRAM"
    assert not {flag_name(one) for one in argv} & {"--speculative-draft-model-path", "--speculative-num-steps"}


@pytest.mark.parametrize(("concurrency", "requests"), [(1, 48), (24, 48), (32, 64), (200, 400)])
def test_every_arm_runs_as_many_requests(concurrency: int, requests: int) -> None:
    """SGLang lowers the number to 48 as soon as it speculates, and only then."""
    busy = replace(server(), largest_concurrency=concurrency)
    for name in ("baseline", "wide"):
        assert flag_value(SGLANG.argv(busy, arm(name)), "--max-running-requests") == str(requests)
        assert SGLANG.expected(busy, arm(name))["max_running_requests"] == requests


@pytest.mark.parametrize("pasted", [("--max-running-requests=96",), ("--max-running-requests", "96")])
def test_a_users_own_number_of_running_requests_is_left_alone(pasted: tuple[str, ...]) -> None:
    argv = SGLANG.argv(with_args(*pasted), arm("wide"))
    assert [one for one in argv if flag_name(one) == "--max-running-requests"] == [pasted[0]]
    assert SGLANG.expected(with_args(*pasted), arm("wide"))["max_running_requests"] == 96


# environment


def test_every_server_reads_the_cache_and_never_the_hub() -> None:
    env = {variable["name"]: variable["value"] for variable in SGLANG.env(server())}
    assert (env["HF_HUB_OFFLINE"], env["HF_HUB_CACHE"], env["SGLANG_CACHE_DIR"]) == ("1", "/models/hub", "/jit")


def test_a_users_variable_takes_the_place_of_ours() -> None:
    mine = {"name": "HF_HUB_OFFLINE", "value": "0"}
    env = SGLANG.env(replace(server(), engine=replace(server().engine, env=(mine,))))
    assert [variable for variable in env if variable["name"] == "HF_HUB_OFFLINE"] == [mine]


# what the server must say of itself


def test_a_candidate_must_say_that_it_speculates_as_asked() -> None:
    assert SGLANG.expected(server(), arm("wide")) == {
        "served_model_name": "qwen3-coder-next",
        "tp_size": 4,
        "random_seed": 0,
        "decode_log_interval": 10,
        "max_running_requests": 48,
        "speculative_algorithm": "EAGLE3",
        "speculative_num_steps": 3,
        "speculative_eagle_topk": 4,
        "speculative_num_draft_tokens": 8,
    }


def test_the_baseline_must_say_that_it_does_not() -> None:
    expected = SGLANG.expected(server(), arm("baseline"))
    assert {key: value for key, value in expected.items() if key.startswith("speculative")} == {
        "speculative_algorithm": None,
        "speculative_num_steps": None,
        "speculative_eagle_topk": None,
        "speculative_num_draft_tokens": None,
    }


def test_a_draft_without_a_tree_may_have_a_shape_of_its_own() -> None:
    expected = SGLANG.expected(server(), Arm(name="ngram", draft=Draft(algorithm="NGRAM")))
    assert expected["speculative_algorithm"] == "NGRAM"
    assert "speculative_num_steps" not in expected


def test_what_speculation_changes_behind_our_back_is_compared() -> None:
    assert SGLANG.compared == COMPARED
    assert {"attention_backend", "page_size", "max_running_requests", "mem_fraction_static", "context_length"} <= set(
        COMPARED
    )
    assert not any(key.startswith("speculative") for key in COMPARED), "that is what differs"


# refusals


def test_the_example_is_not_refused() -> None:
    for name in ("latency", "throughput"):
        assert SGLANG.refusals(server(name), pool(name).spec.arms) == ()


@pytest.mark.parametrize("flag", [*OWNED, "--speculative-num-steps", "--speculative-anything"])
def test_a_flag_that_paceline_sets_is_refused(flag: str) -> None:
    assert refused(f"{flag}=1") == [f"engine.args[1]: {flag} is set by Paceline from the resource; remove it"]


def test_a_flag_given_twice_is_refused_however_it_is_written() -> None:
    assert refused("--page-size=1", "--page-size", "2") == ["engine.args[2]: --page-size is given twice; keep one"]


@pytest.mark.parametrize(
    ("short", "flag"),
    [
        ("--trust-remote", "--trust-remote-code"),
        ("--api-k=secret", "--api-key"),
        ("--spec", "--speculative-"),
        ("--speculative", "--speculative-"),
    ],
)
def test_what_argparse_reads_as_such_a_flag_is_refused(short: str, flag: str) -> None:
    assert refused(short) == [
        f"engine.args[1]: {flag_name(short)} (read as {flag}) is set by Paceline from the resource; remove it"
    ]


@pytest.mark.parametrize("flag", ["--tp-size-of-something", "--model-loader-extra-config={}", "--enable-mixed-chunk"])
def test_a_longer_flag_is_another_flag(flag: str) -> None:
    assert refused(flag) == []


def test_a_variable_would_be_served_as_something_else_than_is_measured() -> None:
    argument = "--log-level=$(LEVEL)"
    assert refused(argument) == [f"engine.args[1]: {argument}: $(VAR) is not filled in; write the value"]


def refused_of_wide(*args: str) -> list[str]:
    found = SGLANG.refusals(with_args("--attention-backend=triton"), (replace(arm("wide"), args=args),))
    return [said(refusal) for refusal in found]


def test_a_flag_given_to_all_and_again_to_a_candidate_is_refused() -> None:
    assert "wide: args[0]: --attention-backend is given twice; keep one" in refused_of_wide("--attention-backend=fa3")


@pytest.mark.parametrize("argument", ["--page-size=16", "--mem-fraction-static=0.7", "--max-running-requests=8"])
def test_arms_may_not_differ_in_what_is_compared(argument: str) -> None:
    assert refused_of_wide(argument) == [
        f"wide: args[0]: {flag_name(argument)} is compared and must not differ between arms; set it in spec.engine.args"
    ]
    assert refused_of_wide("--page-s=16")[0].startswith("wide: args[0]: --page-s (read as --page-size)")
    assert refused_of_wide("--disable-overlap-schedule") == []


def test_a_candidates_own_arguments_are_looked_at_too() -> None:
    found = SGLANG.refusals(server(), (arm("baseline"), replace(arm("wide"), args=("--tp=8",))))
    assert [(refusal.arm, refusal.path) for refusal in found] == [("wide", "args[0]")]


def test_a_branching_tree_needs_a_backend_that_stays() -> None:
    """SGLang would choose another attention backend behind it, and the arms would differ in more than the tree."""
    (found,) = SGLANG.refusals(with_args(), pool().spec.arms)
    assert "candidate wide has topK 4" in found.message
    assert "--attention-backend=triton" in found.message
    assert SGLANG.refusals(with_args(), (arm("baseline"), arm("narrow", "throughput"))) == ()
    both = with_args("--prefill-attention-backend=triton", "--decode-attention-backend=triton")
    assert SGLANG.refusals(both, pool().spec.arms) == ()
