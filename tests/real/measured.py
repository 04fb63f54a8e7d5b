"""A round of a real server on this machine's CPU: the operator's command, wrapper, client and judge, and a report."""

import itertools
import os
import platform
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from tests.support.rounds import arm_command, with_arms
from tests.support.running import free_port
from tests.unit.round.pod import Outcome, begin

from paceline.core import Arm, Dataset, Parity, Server, Workload
from paceline.core.names import snapshot_path
from paceline.engines import ENGINES
from paceline.evidence import ArmCommand, Judged, Point, RoundPlan

ROOT = Path(__file__).parents[2]
PATIENCE = 3600.0
START_SECONDS = 1500.0
"""A CPU that compiles and is not alone; the operator's own limit is half an hour."""
CALLED = {"vLLM": "vLLM", "SGLangJAX": "sglang-jax"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A real server. `folder` holds its models and prompts (`staged`), `command` replaces the first words of the
    operator's, `environment` is that of its processes."""

    type: str
    version: str
    server: Server
    arms: tuple[Arm, ...]
    folder: Path
    models: Mapping[str, str]
    """Source of a model → its name in the folder."""
    command: Callable[[Arm, tuple[str, ...]], tuple[str, ...]]
    environment: Mapping[str, str]
    workloads: tuple[Workload, ...]
    parity: Parity | None = None

    @property
    def target(self) -> Path:
        return self.folder / self.models[self.server.target.source]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    engine: Engine
    outcome: Outcome
    report: Path
    section: str
    """Of that page."""

    def point(self, arm: str, workload: str) -> Point:
        found = self.judged(arm, workload).point
        assert found is not None
        return found

    def judged(self, arm: str, workload: str) -> Judged:
        return self.outcome.judged[arm, workload]

    def resolved(self, arm: str) -> Mapping[str, object]:
        (found,) = [one.resolved for one in self.outcome.result.replicates if one.arm == arm]
        return found


def own(concurrency: int, requests: int, max_tokens: int, prompts: str = "short", **more: str) -> Workload:
    """Short prompts: a CPU prefills a hundred tokens a second. `more` are fields of the dataset, with a name first."""
    source = f"pvc://models/prompts/{prompts}.jsonl"
    fields = {"name": prompts, **more}
    dataset = Dataset(source=source, requests=requests, max_tokens=max_tokens, **fields)  # type: ignore[arg-type]
    return Workload(dataset=dataset, concurrency=concurrency)


def measure(engine: Engine, directory: Path, report: Path, section: str) -> Measured:
    """One round, its servers one after another; raises if it does not come to its end."""
    adapter, port = ENGINES[engine.type], free_port()
    assert not adapter.refusals(engine.server, engine.arms)
    datasets = {one.dataset.name: one.dataset for one in engine.workloads}

    def change(plan: RoundPlan) -> RoundPlan:
        plan = with_arms(
            plan,
            engine=engine.type,
            engine_version=engine.version,
            compared=adapter.compared,
            unseen=adapter.probe(engine.version).unseen,
            cuts_drafts=adapter.probe(engine.version).cuts_drafts,
        )
        return replace(
            plan,
            served_name=engine.server.served_name,
            moved=adapter.moved(()),
            files={name: str(engine.folder / one.address.path) for name, one in datasets.items()},
            parity=engine.parity,
            start_timeout_seconds=START_SECONDS,
            workload_timeout_seconds=START_SECONDS,
        )

    arms = tuple(_command(engine, arm, port) for arm in engine.arms)
    own = {one["name"]: one["value"] for one in adapter.env(engine.server) if "value" in one}
    jit = directory / "jit"
    jit.mkdir()
    placed = {name: str(jit) if value == "/jit" else value for name, value in own.items()}
    environment = {**placed, **engine.environment, "NVIDIA_VISIBLE_DEVICES": ""}
    pod = begin(directory, port, arms, *engine.workloads, change=change, **environment)
    try:
        outcome = pod.finish(PATIENCE)
    finally:
        pod.end()
    assert (outcome.client, outcome.wrapper) == (0, 0), outcome.log
    return Measured(engine=engine, outcome=outcome, report=report, section=section)


def _command(engine: Engine, arm: Arm, port: int) -> ArmCommand:
    """As the operator renders it, but for the program, the port and where the models are."""
    adapter, target = ENGINES[engine.type], engine.server.target
    models = (target, arm.draft.model) if arm.draft and arm.draft.model else (target,)
    here = {snapshot_path(one.source, one.commit): str(engine.folder / engine.models[one.source]) for one in models}
    argv = tuple(_placed(word, here) for word in adapter.argv(engine.server, arm))
    listens = argv.index("--port") + 1
    argv = (*argv[:listens], str(port), *argv[listens + 1 :])
    expected = adapter.expected(engine.server, arm)
    return arm_command(arm.name, *engine.command(arm, argv), candidate=arm.draft is not None, expected=expected)


def _placed(word: str, here: Mapping[str, str]) -> str:
    for path, place in here.items():
        word = word.replace(path, place)
    return word


def environ(directory: Path) -> dict[str, str]:
    """No hub, and one thread: the server shares the machine with its client."""
    return {
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "OMP_NUM_THREADS": "1",
        "PATH": f"{directory}:{os.environ['PATH']}",
        "PACELINE_HEARTBEAT_SECONDS": "300",
    }


# The report


def report(measured: Measured) -> str:
    parts = (_head, _arms, _table, _parity, _resolved)
    return "\n".join(line for part in parts for line in (*part(measured), "")).replace("\n\n\n", "\n\n")


def _head(measured: Measured) -> Iterator[str]:
    engine, result = measured.engine, measured.outcome.result
    yield f"## {measured.section}"
    yield ""
    yield dated(f"{CALLED[engine.type]} {result.engine_version}", emulated_or_not(result.emulated))


def emulated_or_not(emulated: bool) -> str:
    return "the engine was emulated" if emulated else "the engine was not emulated"


def dated(engine: str, emulated: str) -> str:
    asked = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    where = f"{platform.machine()}, {os.cpu_count()} CPUs"
    return f"{engine} on {datetime.now(UTC):%Y-%m-%d}, commit {commit}, {where}; {emulated}."


def _arms(measured: Measured) -> Iterator[str]:
    asked = [_options(measured, arm.argv) for arm in measured.outcome.plan.arms]
    shared = [one for one in asked[0] if all(one in others for others in asked)]
    yield "| arm | ready after | KV cache | arguments beside the shared ones |"
    yield "|---|---|---|---|"
    arms = zip(measured.outcome.plan.arms, measured.outcome.result.replicates, asked, strict=True)
    for arm, replicate, options in arms:
        told = " ".join(one for one in options if one not in shared)
        start = "-" if replicate.start_seconds is None else f"{replicate.start_seconds:.0f} s"
        tokens = "-" if replicate.kv_tokens is None else f"{replicate.kv_tokens:,} tokens"
        yield f"| {arm.name} | {start} | {tokens} | {f'`{told}`' if told else ''} |"


def _options(measured: Measured, argv: Sequence[str]) -> list[str]:
    """Each with its values, from the seed on; models by their names."""
    asked = itertools.dropwhile(lambda word: not word.startswith("--seed") and "random-seed" not in word, argv)
    options: list[str] = []
    for word in asked:
        if word.startswith("--"):
            options.append(word)
        else:
            options[-1] += f" {word}"
    return [one.replace(f"{measured.engine.folder}/", "") for one in options]


def _table(measured: Measured) -> Iterator[str]:
    yield "| arm | workload | requests | output tokens | tok/s | acceptance length | verify calls | malformed | |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for (arm, workload), judged in measured.outcome.judged.items():
        point, verdict = judged.point, "" if judged.valid else judged.why
        if point is None:
            yield f"| {arm} | {workload} | | | | | | | {verdict} |"
            continue
        length = "-" if point.accept_length is None else f"{point.accept_length:.2f}"
        cells: Sequence[object] = (
            arm, workload, point.completed, point.output_tokens, f"{point.output_throughput or 0:.1f}", length,
            "-" if point.verify_calls is None else point.verify_calls,
            "-" if point.malformed is None else point.malformed, verdict,
        )  # fmt: skip
        yield f"| {' | '.join(str(cell) for cell in cells)} |"


def _parity(measured: Measured) -> Iterator[str]:
    """Answers beside the baseline's."""
    for replicate in measured.outcome.result.replicates[1:] if measured.engine.parity else ():
        found = replicate.outputs
        if found is None or found.unknown:
            yield f"Answers of {replicate.arm}: not compared: {found.unknown if found else replicate.error}"
            continue
        yield (
            f"Answers of {replicate.arm}: {found.identical} of {found.samples} are the baseline's, {found.near_ties} "
            f"differ at a near tie, {len(found.diverged)} by more"
            + (f"; earliest at token {found.first}, widest gap {found.gap} nats." if found.first is not None else ".")
        )


def _resolved(measured: Measured) -> Iterator[str]:
    """What the servers said of themselves, where they differ."""
    arms = [replicate.arm for replicate in measured.outcome.result.replicates]
    names = dict.fromkeys(name for arm in arms for name in measured.resolved(arm))
    alike = {name for name in names if len({repr(measured.resolved(arm).get(name)) for arm in arms}) == 1}
    apart = (
        f"`{name}` ({', '.join(f'{arm} {measured.resolved(arm).get(name)}' for arm in arms)})"
        for name in names
        if name not in alike
    )
    yield f"{len(alike)} resolved arguments are equal on all arms. Not equal: {', '.join(apart)}."
