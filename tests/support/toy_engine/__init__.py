"""A fourth engine: what its package needs, and nothing that is written anywhere else.

It runs on the accelerators of one maker only, drafts chains with a head of EAGLE3 or from the text, and may choose the
depth itself. `server` is the process.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from paceline.core import Arm, Server
from paceline.core.manifest import Scalar
from paceline.engines import Adapter, Capabilities, Probe, Refusal, Scrape, Speculation, Work, json_object, rules
from paceline.engines import bounds as limits
from paceline.engines.adapter import Bound, Emulator
from paceline.engines.arguments import Flag, FlagList, ParsedFlag
from paceline.engines.command import model_path
from paceline.engines.environment import environment
from paceline.engines.importing import CURRENT, Importing, SourceOf, Speculating, value_of
from paceline.engines.model_rules import ModelFinding, ModelRule, PairFacts, of_head
from paceline.engines.rules import Configuration, EngineRule

NAME, RESOURCE, PORT, JIT_CACHE = "Toy", "toys.example/npu", 7345, "/toy-kernels"
SLOTS, MANAGED = "--slots", ("--port", "--model", "--name", "--parallel", "--draft", "--depth")
FLAGS = FlagList(
    source=NAME,
    flags={name: Flag(name=name, kind="int" if name == SLOTS else "str") for name in (SLOTS, *MANAGED)},
    managed=dict.fromkeys(MANAGED, "remove it"),
)
PROGRAM = (sys.executable, str(Path(__file__).with_name("server.py")))
DEPTH = 4
"""Of a chain whose depth is not given."""


def argv(server: Server, arm: Arm) -> tuple[str, ...]:
    return (
        *PROGRAM,
        "--port", str(PORT),
        "--model", model_path(server.target),
        "--name", server.served_name,
        "--parallel", str(server.accelerator.tensor_parallel_size),
        *(() if arm.draft is None else ("--draft", _head(arm), "--depth", str(verify_tokens(arm) - 1))),
        *server.engine.args,
        *arm.args,
    )  # fmt: skip


def _head(arm: Arm) -> str:
    head = arm.draft and arm.draft.model
    return model_path(head) if head else "text"


def verify_tokens(arm: Arm) -> int:
    if arm.draft is None:
        return 1
    return arm.tree.num_draft_tokens if arm.tree else 1 + DEPTH


def expected(server: Server, arm: Arm) -> Mapping[str, Scalar]:
    return {"parallel": server.accelerator.tensor_parallel_size, "depth": verify_tokens(arm) - 1}


def refusals(server: Server, arms: tuple[Arm, ...]) -> tuple[Refusal, ...]:
    return rules.refusals(RULES, Configuration(server=server, arms=arms, flags=FLAGS))


def _odd_steps(configuration: Configuration) -> Iterator[Refusal]:
    for arm in configuration.arms:
        if arm.tree and arm.tree.num_steps % 2:
            message = f"{arm.tree.num_steps} is odd, and the toy drafts in pairs: take {arm.tree.num_steps + 1}"
            yield Refusal(arm=arm.name, path="tree.numSteps", message=message)


RULES = (
    rules.MANAGED,
    rules.UNKNOWN,
    rules.MISVALUED,
    rules.TWICE,
    rules.DIFFERENT,
    EngineRule(id="toy-pairs", check=_odd_steps, reason="the server drafts in pairs", source="server.py"),
)


def one_layer(pair: PairFacts) -> Iterator[ModelFinding]:
    if (layers := pair.head.num_hidden_layers or 1) > 1:
        yield of_head(pair, "source", f"{pair.name} has {layers} layers", "name a head of one layer")


MODEL_RULES = (ModelRule(id="toy-layers", check=one_layer, why="the toy loads only the first"),)


def bounds(server: Server) -> Mapping[str, Bound]:
    return limits.bounds(FLAGS.parse(server.engine.args), {SLOTS: "requests"})


def _page(scrape: Scrape) -> Mapping[str, Mapping[str, int]]:
    return json_object(scrape.pages["/toy"])


def _grown(before: Scrape, after: Scrape) -> dict[str, int]:
    """How much each counter has risen."""
    return {name: count - _page(before)["counters"][name] for name, count in _page(after)["counters"].items()}


def speculation(before: Scrape, after: Scrape) -> Speculation:
    grown, depth = _grown(before, after), _page(after)["arguments"]["depth"]
    if not depth:
        return Speculation(retractions=0)
    steps = grown["steps"]
    return Speculation(
        accept_length=1 + grown["accepted"] / steps if steps else None,
        verify_calls=steps,
        retractions=0,
        draft_tokens=float(depth),
    )


def work(before: Scrape, after: Scrape) -> Work:
    grown = _grown(before, after)
    return Work(requests=grown["requests"], prompt_tokens=grown["prompt"], cached_tokens=0)


def probe(_: str) -> Probe:
    return Probe(
        pages=("/toy",),
        resolved=lambda scrape: {**_page(scrape)["arguments"], "version": _page(scrape)["version"]},
        kv_tokens=lambda _: None,
        speculation=speculation,
        work=work,
        flush_path="/toy/forget",  # what the client calls an endpoint of OpenAI's chat API
        unseen=("accepted_at",),
    )


def speculating(_version: str, flags: Sequence[ParsedFlag], place: SourceOf, _target: str) -> Speculating:
    head, depth = value_of(flags, "--draft"), int(value_of(flags, "--depth") or DEPTH)
    if not head:
        return Speculating()
    chain = {"name": CURRENT, "tree": {"numSteps": depth, "topK": 1, "numDraftTokens": depth + 1}}
    return Speculating(
        said=f"--draft {head}", draft={"algorithm": "EAGLE3", "source": place(head)}, candidates=(chain,)
    )


CAPABILITIES = Capabilities(
    algorithms=("EAGLE3", "NGRAM"),
    aliases={"TOYHEAD": "EAGLE3"},
    fewest_steps=2,
    adaptive=("EAGLE3",),
    adaptive_steps="most proposed tokens",
    resource=RESOURCE,
)
ADAPTER = Adapter(
    capabilities=CAPABILITIES,
    program=PROGRAM,
    port=PORT,
    newest="1.0.0",
    reads=lambda _: True,
    argv=argv,
    running_requests=lambda _: 64,
    env=lambda server: environment(server, {"TOY_KERNELS": JIT_CACHE}, ()),
    expected=expected,
    verify_tokens=verify_tokens,
    compared=("parallel", "slots"),
    moved=lambda _: ("draft", "depth"),
    refusals=refusals,
    bounds=bounds,
    eagle3_targets=lambda _: frozenset({"Qwen3ForCausalLM"}),
    ready_path=lambda _: "/toy",
    health_path="/toy/alive",
    health_timeout_seconds=3,
    probe=probe,
    jit_cache=JIT_CACHE,
    importing=Importing(
        modules=("toy.server",),
        repositories=("toy",),
        flags=lambda _: FLAGS,
        speculative=("--draft", "--depth"),
        speculating=speculating,
    ),
    emulator=Emulator(module="tests.support.toy_engine.server"),
    model_rules=MODEL_RULES,
    loses=lambda arm: "the toy forgets what a request asks for once it drafts" if arm.draft else "",
)
