"""What stands in for a node, for images and for volumes. Pure: what a round's Job asks for, as this machine has it."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from paceline.core import Engine, Server
from paceline.core.manifest import Manifest
from paceline.core.text import in_all_texts
from paceline.engines import ENGINES, keys
from paceline.engines.pod_template import SERVER
from paceline.evidence import ENVIRONMENT, RoundPlan
from paceline.measure.ports import LOOPBACK

VARIABLE = re.compile(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)")
"""What the kubelet replaces in a command and in the value of a variable."""
_SECRET = re.compile(r"TOKEN(?!S|I)|KEY|SECRET|PASS|PWD|CREDENTIAL|AUTH", re.IGNORECASE)
"""Names of variables and flags whose values are not written down; of TOKENIZERS_PARALLELISM they are."""
USER = re.compile(r"://[^/@\s]+@")
"""Who asks, in an address: as HTTPS_PROXY has it."""
_HIDDEN = "***"
READ_BY_ENGINES = re.compile(
    r"(CUDA|NCCL|GLOO|TORCH|TORCHINDUCTOR|PYTORCH|TRITON|FLASHINFER|OMP|KMP|MKL|OPENBLAS|GOMP|XLA|JAX|TPU|LIBTPU|"
    + "|".join(begins for adapter in ENGINES.values() for begins in adapter.variables)
    + r")_\w+|LD_PRELOAD|LD_LIBRARY_PATH|PYTHONPATH|MALLOC_\w+"
)
"""Names of variables by which an engine, or what it computes with, is faster, slower or another program."""
SAY_NOTHING = re.compile(r"CUDA_(VISIBLE_DEVICES|DEVICE_ORDER)|\w+_(VERSION|HOME)")
"""The devices are told by themselves; images of vendors name their parts."""
EMULATED_RELEASE = "PACELINE_EMULATE_VERSION"
EMULATED_SPEED = "PACELINE_EMULATE_SPEED"
"""Variables that tell the emulator which release and how fast it is."""
_FIELDS = {"metadata.uid": "uid", "metadata.name": "name", "spec.nodeName": "node"}
"""Fields of a pod that a variable may name, and that this machine's have."""


class UnsetVariableError(LookupError):
    """A variable of a container whose value is in the cluster; the text says how to give it one here."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """`command` replaces an engine's program (`python3 -m sglang.launch_server`); None: that is on PATH. `env` is
    added to that of the servers, `secret` are variables that the spec has from Secrets, `inherited` are variables of
    ours that they read. `devices` are the GPUs' numbers; none: all that the servers find. `paths` maps paths in a pod
    to those here, `files` datasets to their files."""

    name: str
    folder: Path
    port: int
    command: tuple[str, ...] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    secret: frozenset[str] = frozenset()
    inherited: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    paths: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    emulated: bool = False
    mark: str = ""
    """The sentence at the head of every output of an emulated run."""

    def here(self, text: str) -> str:
        """The text with each path in a pod as the path here."""
        return self._path.sub(lambda found: self.paths[found[0]], text) if self.paths else text

    @cached_property
    def _path(self) -> re.Pattern[str]:
        longest = sorted(self.paths, key=len, reverse=True)
        return re.compile(rf"(?<![\w./-])(?:{'|'.join(map(re.escape, longest))})(?![\w.-])")

    @property
    def note(self) -> str:
        """What a reader of the evidence must know of how it was measured; one line."""
        said = [f"measured on {self.name} without a cluster"]
        if self.command and not self.emulated:
            said.append(f"the servers' program was {' '.join(_told(self.command))}")
        if self.mark:
            said.append(self.mark[:1].lower() + self.mark[1:])
        known = {name for name, said in (("PATH", self.follows), (EMULATED_SPEED, self.mark)) if said}
        if told := [(name, value) for name, value in self.env.items() if name not in known]:
            said.append(f"with {self._shown(told)}")
        if self.inherited:
            said.append(f"in an environment with {self._shown(self.inherited.items())}")
        if self.devices:
            said.append(f"on devices {','.join(self.devices)}")
        return "; ".join(said)

    def _shown(self, variables: Iterable[tuple[str, str]]) -> str:
        return " ".join(_written((name, _HIDDEN if name in self.secret else value)) for name, value in variables)

    @property
    def follows(self) -> tuple[str, ...]:
        """The variables of a virtual environment; the rest of its PATH is the terminal's, and another tomorrow."""
        return ("VIRTUAL_ENV", "PATH") if "VIRTUAL_ENV" in self.env else ()


def read_by_engines(environ: Mapping[str, str], given: Collection[str]) -> dict[str, str]:
    """Variables of our environment that the servers inherit and read. `given`: those that others set."""
    return {
        name: value
        for name, value in sorted(environ.items())
        if name not in given and READ_BY_ENGINES.fullmatch(name) and not SAY_NOTHING.fullmatch(name)
    }


def past_proxies(environ: Mapping[str, str]) -> dict[str, str]:
    """A server asks itself for a first answer while it starts, by a client that follows the variables of proxies
    (SGLang 0.5.23, entrypoints/http_server.py:2373): none may come in between."""
    said = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    return dict.fromkeys(("NO_PROXY", "no_proxy"), ",".join(filter(None, (said, LOOPBACK, "localhost"))))


def _written(variable: tuple[str, str]) -> str:
    name, value = variable
    return f"{name}={_HIDDEN if _SECRET.search(name) else USER.sub(f'://{_HIDDEN}@', value)}"


def _told(command: Sequence[str]) -> Iterator[str]:
    """`env HF_TOKEN=hf_x serve --api-key x` without its secrets."""
    for before, word in zip(("", *command), command, strict=False):
        if before.startswith("-") and "=" not in before and _SECRET.search(before):
            yield _HIDDEN
        else:
            yield _written((word.partition("=")[0], word.partition("=")[2])) if "=" in word else word


def otherwise(machine: Machine, server: Server) -> Iterator[str]:
    """What its servers have that the spec does not say, in sentences: with that, rounds are no evidence of the spec.
    The emulator's own variables and a virtual environment are where the engine is, not what it is told."""
    if machine.command and not machine.emulated:
        program = " ".join(_told(machine.command))
        yield f"the servers' program was {program} (--engine-command), and not engine.image's own"
    said = {one["name"]: one for one in (*_of_the_template(server.engine), *server.engine.env, *keys.env(server))}
    for name, value in machine.env.items():
        known = said.get(name, {})
        follows = name in machine.follows or (machine.emulated and name in (EMULATED_RELEASE, EMULATED_SPEED))
        if not (follows or "valueFrom" in known or known.get("value") == value):
            yield f"the servers had {name} (--env), and engine.env does not: write it there, or leave it out"
    yield from left_out(server.engine)


def _of_the_template(engine: Engine) -> Iterator[Mapping[str, Any]]:
    for container in engine.pod_template.get("spec", {}).get("containers", ()):
        if container["name"] == SERVER:
            yield from container.get("env", ())


def as_here(job: Manifest, machine: Machine) -> Manifest:
    """The Job of a round with its plan as this machine carries it out. It is judged by that plan."""
    changed = deepcopy(job)
    for container in changed["spec"]["template"]["spec"]["containers"]:
        for variable in container.get("env", ()):
            if variable["name"] == ENVIRONMENT:
                variable["value"] = plan_here(RoundPlan.from_json(variable["value"]), machine).to_json()
    return changed


def plan_here(plan: RoundPlan, machine: Machine) -> RoundPlan:
    """The plan with the paths, the program and the address that servers have here. All other words stay."""
    moved = in_all_texts(plan, machine.here)
    return replace(
        moved,
        arms=tuple(replace(arm, argv=argv_here(plan.engine, arm.argv, machine)) for arm in moved.arms),
        port=machine.port,
        files=dict(machine.files),
        results_dir=str(machine.folder / "results"),
    )


def argv_here(engine: str, argv: Sequence[str], machine: Machine) -> tuple[str, ...]:
    """A server's command. It listens on loopback only: nobody else is to reach it."""
    program = ENGINES[engine].program
    address = {"--host": LOOPBACK, "--port": str(machine.port)}
    words = argv[len(program) :]
    ours = (address.get(before, word) for before, word in zip(("", *words), words, strict=False))
    return (*(machine.command or program), *ours)


def process_environment(
    container: Mapping[str, Any], machine: Machine, given: Mapping[str, str], pod: Mapping[str, str]
) -> dict[str, str]:
    """The variables that a container's spec asks for. `given`: values of those that come from the cluster; `pod`: the
    fields in FIELDS. Raises UnsetVariableError."""
    found: dict[str, str] = {}
    for variable in container.get("env", ()):
        name = variable["name"]
        if "valueFrom" not in variable:
            found[name] = machine.here(expanded(variable.get("value", ""), found))
        elif (field := variable["valueFrom"].get("fieldRef", {}).get("fieldPath")) in _FIELDS:
            found[name] = pod[_FIELDS[field]]
        elif name in given:
            found[name] = given[name]
        elif not next(iter(variable["valueFrom"].values())).get("optional"):
            kind = next(iter(variable["valueFrom"])).removesuffix("Ref")
            raise UnsetVariableError(f"{name} comes from a {kind} of the cluster: give it by --env {name}=VALUE")
    return found


def from_secrets(server: Server) -> frozenset[str]:
    """Names of the variables that servers have from Secrets."""
    return frozenset(one["name"].removeprefix(keys.HIDE) for one in (*keys.to_hide(server), *keys.env(server)))


def hidden_variables(machine: Machine, given: Mapping[str, str]) -> dict[str, str]:
    """Variables of the client: what servers have from Secrets, or by a name that says so, for it to hide them in what
    they say."""
    names = machine.secret | {name for name in machine.env if _SECRET.search(name)}
    return {f"{keys.HIDE}{name}": given[name] for name in sorted(names) if given.get(name)}


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """As the kubelet does it: $(NAME) is a variable's value if there is one, $$ is $."""
    return VARIABLE.sub(lambda found: variables.get(found[1], found[0]) if found[1] else "$", text)


def containers(job: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    return {one["name"]: one for one in job["spec"]["template"]["spec"]["containers"]}


def left_out(engine: Engine) -> Iterator[str]:
    """What the user's pod template asks for, and no process here gets."""
    spec = engine.pod_template.get("spec", {})
    others = [one["name"] for one in (*spec.get("initContainers", ()), *spec.get("containers", ()))]
    if more := [name for name in others if name != "server"]:
        yield f"engine.podTemplate: {', '.join(more)} is not run here"
