"""What must be equal on an arm with an engine of its own: all that is written for both."""

from dataclasses import replace

from tests.unit.engines.sglang.servers import BASE, chain, server

from paceline.core import Arm, Engine, Server
from paceline.engines.held_arguments import held_arguments


def beside(shared: Server, *args: str, version: str = "0.5.23", type: str = "SGLang") -> tuple[str, ...] | None:
    own = replace(shared.engine, type=type, version=version, image=f"{type}:{version}".lower(), args=args)
    return held_arguments(shared, Arm(name="next", engine=own))


def test_an_arm_that_shares_the_engine_holds_all_arguments() -> None:
    assert held_arguments(server(), BASE) is None
    assert held_arguments(server(), chain()) is None


def test_what_is_written_alike_for_both_is_held_and_what_is_written_otherwise_is_the_change() -> None:
    shared = server("--dtype=bfloat16", "--chunked-prefill-size", "4096", "--disable-radix-cache")
    held = beside(shared, "--dtype=bfloat16", "--chunked-prefill-size=8192", "--disable-radix-cache")
    assert held is not None
    assert {"dtype", "disable_radix_cache", "random_seed", "tp_size", "model_path"} <= {*held}
    assert "chunked_prefill_size" not in held


def test_what_only_one_of_them_is_given_is_the_change() -> None:
    held = beside(server("--dtype=bfloat16"), "--schedule-policy=fcfs")
    assert held is not None
    assert not {"dtype", "schedule_policy"} & {*held}


def test_engines_of_two_types_hold_what_both_resolve_unless_a_person_wrote_it() -> None:
    assert beside(server(), type="vLLM", version="0.33.0") == ("kv_cache_dtype", "quantization")
    assert beside(server(), "--kv-cache-dtype=fp8", type="vLLM", version="0.33.0") == ("quantization",)
    assert beside(server("--quantization=fp8"), type="vLLM", version="0.33.0") == ("kv_cache_dtype",)


def test_the_speculation_of_such_an_arm_is_not_held() -> None:
    arm = replace(chain(), engine=Engine(type="SGLang", version="0.5.22", image="sglang:0.5.22"))
    held = held_arguments(server(), arm)
    assert held is not None
    assert not [name for name in held if name.startswith("speculative")]


def test_a_flag_is_held_by_the_name_that_the_server_resolves() -> None:
    shared = server()
    off = replace(
        shared.engine, type="vLLM", version="0.33.0", args=("--no-enable-prefix-caching", "--max-model-len=64")
    )
    held = held_arguments(replace(shared, engine=off), Arm(name="next", engine=replace(off, image="other")))
    assert held is not None
    assert {"enable_prefix_caching", "max_seq_len"} <= {*held}
