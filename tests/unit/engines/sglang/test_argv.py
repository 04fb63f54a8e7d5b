"""How an arm becomes an SGLang process, and what that process must then say of itself."""

from dataclasses import replace

import pytest
from tests.support.example import arm, server
from tests.unit.engines.sglang import servers

from paceline.core import Arm, Server
from paceline.engines import ENGINES
from paceline.engines.arguments import flag_value
from paceline.engines.keys import ADMIN_KEY, API_KEY
from paceline.engines.sglang.arguments import COMPARED

SGLANG = ENGINES["SGLang"]
HEAD = f"/models/hub/models--thoughtworks--Qwen3-Coder-Next-Eagle3/snapshots/{'2' * 40}"
TARGET = f"/models/hub/models--Qwen--Qwen3-Coder-Next/snapshots/{'1' * 40}"
TREE = (
    "--speculative-num-steps", "3", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4",
)  # fmt: skip
ADAPTIVE = ("--speculative-adaptive", "--speculative-eagle-topk", "1")


def with_args(*args: str) -> Server:
    return replace(server(), engine=replace(server().engine, args=args))


# argv


def test_the_flags_that_were_published_are_all_there() -> None:
    """The server published for Qwen3-Coder-Next: tp 4, the triton backend, remote code trusted, the tree 3/4/8."""
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
        "--mem-fraction-static=0.85",
    )  # fmt: skip


def test_an_arm_adds_its_speculation_and_its_own_arguments_and_changes_nothing_else() -> None:
    baseline, wide = (
        SGLANG.argv(server(), arm("baseline")),
        SGLANG.argv(server(), replace(arm("wide"), args=("--x=1",))),
    )
    added = wide[len(baseline) - 2 : -3]
    assert wide == (*baseline[:-2], *added, *baseline[-2:], "--x=1")
    assert all(flag.startswith("--speculative-") for flag in added[::2])


HEAD_FLAGS = (
    "--speculative-draft-model-path",
    f"/models/hub/models--thoughtworks--Qwen3-8B-Eagle3/snapshots/{'2' * 40}",
)


@pytest.mark.parametrize(
    ("version", "arm", "flags"),
    [
        ("0.4.5", servers.chain(), ("EAGLE3", *HEAD_FLAGS, *TREE)),
        ("0.5.23", servers.chain(algorithm="NEXTN"), ("EAGLE", *HEAD_FLAGS, *TREE)),
        ("0.5.23", servers.arm("MTP", head=None, tree=servers.chain().tree), ("EAGLE", *TREE)),
        ("0.5.6", servers.chain(algorithm="STANDALONE"), ("STANDALONE", *HEAD_FLAGS, *TREE)),
        ("0.5.23", servers.ngram(), ("NGRAM",)),
        (
            "0.5.23",
            servers.ngram(num_draft_tokens=8, breadth=1),
            ("NGRAM", "--speculative-num-draft-tokens", "8", "--speculative-ngram-max-bfs-breadth", "1"),
        ),
        (
            "0.5.6",
            servers.ngram(min_match=2, max_match=6),
            (
                "NGRAM",
                *("--speculative-ngram-min-match-window-size", "2", "--speculative-ngram-max-match-window-size", "6"),
            ),
        ),
        ("0.5.23", servers.block("DFLASH", 16), ("DFLASH", *HEAD_FLAGS, "--speculative-dflash-block-size", "16")),
        ("0.5.23", servers.block("DSPARK", 5), ("DSPARK", *HEAD_FLAGS, "--speculative-dspark-block-size", "5")),
        ("0.5.23", servers.adaptive(), ("EAGLE3", *HEAD_FLAGS, *ADAPTIVE)),
        ("0.5.23", servers.adaptive(steps=5), ("EAGLE3", *HEAD_FLAGS, *ADAPTIVE, "--speculative-num-steps", "5")),
    ],
)
def test_every_algorithm_in_the_words_of_its_version(version: str, arm: Arm, flags: tuple[str, ...]) -> None:
    """NEXTN and MTP by SGLang's own name of both: some targets are compared with that before the alias is resolved."""
    asked = servers.server(version=version, pinned=False)
    added = SGLANG.argv(asked, arm)[len(SGLANG.argv(asked, servers.BASE)) :]
    assert added == ("--speculative-algorithm", *flags)


@pytest.mark.parametrize(("concurrency", "requests"), [(1, 48), (24, 48), (32, 64), (200, 400)])
def test_every_arm_runs_as_many_requests(concurrency: int, requests: int) -> None:
    """SGLang lowers the number to 48 as soon as it speculates, and only then."""
    busy = replace(server(), max_concurrency=concurrency)
    for name in ("baseline", "wide"):
        assert flag_value(SGLANG.argv(busy, arm(name)), "--max-running-requests") == str(requests)
        assert SGLANG.expected(busy, arm(name))["max_running_requests"] == requests


@pytest.mark.parametrize("pasted", [("--max-running-requests=96",), ("--max-running-requests", "96")])
def test_a_users_own_number_of_running_requests_is_left_alone(pasted: tuple[str, ...]) -> None:
    argv = SGLANG.argv(with_args(*pasted), arm("wide"))
    assert [word for word in argv if word.startswith("--max-running-requests")] == [pasted[0]]
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


@pytest.mark.parametrize(
    ("arm", "said"),
    [
        (servers.chain(algorithm="MTP"), ("EAGLE", 3, 1, 4)),
        (servers.ngram(), ("NGRAM", 10, 12)),
        (servers.ngram(num_draft_tokens=8, breadth=1), ("NGRAM", 1, 8)),
        (servers.block("DFLASH", 16), ("DFLASH", 1, 16)),
        (servers.block("DSPARK", 5), ("DSPARK", 1, 6)),
        (servers.adaptive(), ("EAGLE3", True, 1)),
        (servers.adaptive(steps=5), ("EAGLE3", True, 1, 5)),
    ],
)
def test_what_each_algorithm_must_say(arm: Arm, said: tuple[object, ...]) -> None:
    """Held to the real resolution by dev/sglang/resolve-examples. An adaptive server that fell back is not adaptive."""
    expected = SGLANG.expected(servers.server(), arm)
    assert tuple(value for key, value in expected.items() if key.startswith("speculative")) == said


def test_what_speculation_changes_behind_our_back_is_compared() -> None:
    assert SGLANG.compared == COMPARED
    assert {"attention_backend", "page_size", "max_running_requests", "mem_fraction_static", "context_length"} <= set(
        COMPARED
    )
    assert not any(key.startswith("speculative") for key in COMPARED), "that is what differs"


# keys


def test_keys_are_named_and_not_said() -> None:
    """The kubelet fills $(NAME) in; the value is in the Secret alone."""
    locked = servers.server(api_key=servers.secret("api"), admin_key=servers.secret("admin"))
    argv = SGLANG.argv(locked, servers.BASE)
    assert flag_value(argv, "--api-key") == f"$({API_KEY})"
    assert flag_value(argv, "--admin-api-key") == f"$({ADMIN_KEY})"
    named = [variable for variable in SGLANG.env(locked) if "valueFrom" in variable]
    assert named == [
        {"name": API_KEY, "valueFrom": {"secretKeyRef": {"name": "keys", "key": "api"}}},
        {"name": ADMIN_KEY, "valueFrom": {"secretKeyRef": {"name": "keys", "key": "admin"}}},
    ]


def test_a_server_without_keys_has_no_flag_for_them() -> None:
    assert not {"--api-key", "--admin-api-key"} & set(SGLANG.argv(server(), arm("wide")))


def test_several_nodes_find_each_other() -> None:
    nodes = replace(
        servers.server(), accelerator=replace(servers.server().accelerator, nodes=2, tensor_parallel_size=8)
    )
    argv = SGLANG.argv(nodes, servers.BASE)
    assert (flag_value(argv, "--nnodes"), flag_value(argv, "--node-rank")) == ("2", "$(LWS_WORKER_INDEX)")
