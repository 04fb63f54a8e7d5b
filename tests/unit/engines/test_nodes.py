"""Servers of several nodes: what their processes are told, and what is refused."""

from dataclasses import replace
from typing import Any

import pytest
import yaml
from tests.support.example import FILE, run, server
from tests.support.messages import Says

from paceline import api
from paceline.core import Server
from paceline.engines import ENGINES
from paceline.engines.nodes import ranks
from paceline.engines.refusals_of_spec import refused


def over(nodes: int, engine: str = "SGLang", tensor_parallel_size: int = 8, *args: str) -> Server:
    one_node = server()
    return replace(
        one_node,
        engine=replace(one_node.engine, type=engine, args=(*one_node.engine.args, *args)),
        accelerator=replace(one_node.accelerator, nodes=nodes, tensor_parallel_size=tensor_parallel_size),
    )


def manifest(nodes: int, **promotion: Any) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(FILE.read_text())
    loaded["spec"]["accelerator"] |= {"nodes": nodes, "tensorParallelSize": 8 if nodes > 1 else 4}
    loaded["spec"]["promotion"] = promotion
    return loaded


def problems(of: dict[str, Any], says: Says = lambda *_: None) -> list[str]:
    refusals = refused(api.deployment(of), of["spec"])
    says(*(refusal.message for refusal in refusals))
    return [refusal.path for refusal in refusals]


@pytest.mark.parametrize("engine", ["SGLang", "SGLangJAX"])
def test_every_process_is_told_its_rank_and_where_rank_0_listens(engine: str) -> None:
    """The kubelet fills in what the LeaderWorkerSet controller has set."""
    words = ENGINES[engine].argv(over(2, engine), run().arms[0])
    start = words.index("--nnodes")
    assert words[start : start + 6] == (
        "--nnodes", "2", "--node-rank", "$(LWS_WORKER_INDEX)", "--dist-init-addr", "$(LWS_LEADER_ADDRESS):20000",
    )  # fmt: skip


def test_a_server_of_one_node_is_told_nothing() -> None:
    assert ranks(over(1)) == ()


def test_an_engine_whose_nodes_cannot_find_each_other_is_refused(says: Says) -> None:
    of = manifest(2)
    of["spec"]["engine"] |= {"type": "vLLM", "version": "0.33.0", "args": []}
    for pool in of["spec"]["pools"]:
        pool.pop("candidates", None)
    of["spec"]["candidates"] = [{"name": "chain", "tree": {"numSteps": 3, "topK": 1, "numDraftTokens": 4}}]
    assert "spec.accelerator.nodes" in problems(of, says)


def test_what_waits_for_a_verdict_that_cannot_come_is_refused(says: Says) -> None:
    assert problems(manifest(2)) == problems(manifest(1, untilDecided="Nothing")) == []
    assert problems(manifest(2, untilDecided="Nothing"), says) == ["spec.promotion.untilDecided"]


def test_a_run_of_several_nodes_is_refused() -> None:
    spec = replace(run(), server=over(2))
    assert [refusal.path for refusal in refused(spec, {})] == ["spec.accelerator.nodes"]


def test_the_model_is_split_evenly_among_the_nodes(says: Says) -> None:
    of = manifest(2)
    of["spec"]["accelerator"]["tensorParallelSize"] = 3
    assert problems(of, says) == ["spec.accelerator.tensorParallelSize"]

    of["spec"]["engine"]["args"].append("--pp-size=2")
    assert problems(of) == ["spec.engine.args[2]"], "no EAGLE3 with pipelines"
