"""Replaces node, images and volumes by what this machine has. Pure: translates a round's Job."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from paceline.core import Arm, Engine, Server, server_of
from paceline.core.manifest import Manifest
from paceline.core.text import in_all_texts
from paceline.engines import ENGINES, keys
from paceline.engines.pod_template import SERVER
from paceline.evidence import ENVIRONMENT, RoundPlan
from paceline.measure.ports import LOOPBACK

VARIABLE = re.compile(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)")
"""References that the kubelet replaces in a command and in the value of a variable."""
_SECRET = re.compile(r"TOKEN(?!S|I)|KEY|SECRET|PASS|PWD|CREDENTIAL|AUTH", re.IGNORECASE)
"""Matches names of variables and flags whose values are hidden, but not TOKENIZERS_PARALLELISM."""
USER = re.compile(r"://[^/@\s]+@")
"""The user in an address, as in HTTPS_PROXY."""
_HIDDEN = "***"
READ_BY_ENGINES = re.compile(
    r"(CUDA|NCCL|GLOO|TORCH|TORCHINDUCTOR|PYTORCH|TRITON|FLASHINFER|OMP|KMP|MKL|OPENBLAS|GOMP|XLA|JAX|TPU|LIBTPU|"
    + "|".join(begins for adapter in ENGINES.values() for begins in adapter.variables)
    + r")_\w+|LD_PRELOAD|LD_LIBRARY_PATH|PYTHONPATH|MALLOC_\w+"
)
"""Names of variables that change the speed or the behaviour of an engine or of its libraries."""
SAY_NOTHING = re.compile(r"CUDA_(VISIBLE_DEVICES|DEVICE_ORDER)|\w+_(VERSION|HOME)")
"""Variables that are not reported: devices are listed separately, and vendors' images name their parts."""
EMULATED_RELEASE = "PACELINE_EMULATE_VERSION"
EMULATED_SPEED = "PACELINE_EMULATE_SPEED"
"""Variables that set the emulator's release and speed."""
_FIELDS = {"metadata.uid": "uid", "metadata.name": "name", "spec.nodeName": "node"}
"""Fields of a pod that a variable may refer to and that exist here."""


class UnsetVariableError(LookupError):
    """A container's variable has its value in the cluster; the text says how to set it here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What starts an arm's servers, as in `Machine`."""

    command: tuple[str, ...] | None = None
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """`command` replaces an engine's program (`python3 -m sglang.launch_server`); None: use the program on PATH. `env`
    is added to the servers' environment; `secret` names variables that the spec takes from Secrets; `inherited` has
    variables of our environment that the servers read. `devices`: GPU numbers; empty: all that the servers find.
    `paths` maps paths in a pod to local ones, `files` maps datasets to their files."""

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
    """The first sentence of all output of an emulated run."""
    own: Mapping[str, Program] = field(default_factory=dict)
    """Arm with an engine of its own → its program, instead of `command` and `env`."""

    def of(self, arm: str) -> "Machine":
        """The machine as the arm's servers find it."""
        own = self.own.get(arm)
        return replace(self, command=own.command, env=own.env, own={}) if own else self

    def here(self, text: str) -> str:
        """Replace paths in a pod by local paths."""
        return self._path.sub(lambda found: self.paths[found[0]], text) if self.paths else text

    @cached_property
    def _path(self) -> re.Pattern[str]:
        longest = sorted(self.paths, key=len, reverse=True)
        return re.compile(rf"(?<![\w./-])(?:{'|'.join(map(re.escape, longest))})(?![\w.-])")

    @property
    def note(self) -> str:
        """One line on how the evidence was measured, for its readers."""
        said = [f"measured on {self.name} without a cluster", *self._program("the servers'")]
        if self.mark:
            said.append(self.mark[:1].lower() + self.mark[1:])
        said += self._variables
        for arm in self.own:
            said += [*self.of(arm)._program(f"{arm}'s"), *(f"{arm} {text}" for text in self.of(arm)._variables)]
        if self.inherited:
            said.append(f"in an environment with {self._shown(self.inherited.items())}")
        if self.devices:
            said.append(f"on devices {','.join(self.devices)}")
        return "; ".join(said)

    def _program(self, whose: str) -> Iterator[str]:
        if self.command and not self.emulated:
            yield f"{whose} program was {' '.join(_told(self.command))}"

    @property
    def _variables(self) -> tuple[str, ...]:
        known = {name for name, said in (("PATH", self.follows), (EMULATED_SPEED, self.mark)) if said}
        told = [(name, value) for name, value in self.env.items() if name not in known]
        return (f"with {self._shown(told)}",) if told else ()

    def _shown(self, variables: Iterable[tuple[str, str]]) -> str:
        return " ".join(_written((name, _HIDDEN if name in self.secret else value)) for name, value in variables)

    @property
    def follows(self) -> tuple[str, ...]:
        """The variables of a virtual environment; the rest of its PATH comes from the terminal and may change."""
        return ("VIRTUAL_ENV", "PATH") if "VIRTUAL_ENV" in self.env else ()


def read_by_engines(environ: Mapping[str, str], given: Collection[str]) -> dict[str, str]:
    """Variables of our environment that the servers inherit and read. `given`: variables set by other means."""
    return {
        name: value
        for name, value in sorted(environ.items())
        if name not in given and READ_BY_ENGINES.fullmatch(name) and not SAY_NOTHING.fullmatch(name)
    }


def past_proxies(environ: Mapping[str, str]) -> dict[str, str]:
    """Bypass proxies for loopback: a starting server sends itself a first request with a client that follows proxy
    variables (SGLang 0.5.23, entrypoints/http_server.py:2373)."""
    said = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    return dict.fromkeys(("NO_PROXY", "no_proxy"), ",".join(filter(None, (said, LOOPBACK, "localhost"))))


def _written(variable: tuple[str, str]) -> str:
    name, value = variable
    return f"{name}={_HIDDEN if _SECRET.search(name) else USER.sub(f'://{_HIDDEN}@', value)}"


def _told(command: Sequence[str]) -> Iterator[str]:
    """`env HF_TOKEN=hf_x serve --api-key x` with its secrets hidden."""
    for before, word in zip(("", *command), command, strict=False):
        if before.startswith("-") and "=" not in before and _SECRET.search(before):
            yield _HIDDEN
        else:
            yield _written((word.partition("=")[0], word.partition("=")[2])) if "=" in word else word


def otherwise(machine: Machine, server: Server, arms: Iterable[Arm]) -> Iterator[str]:
    """Sentences about settings of the servers that the spec lacks; with these, rounds are not evidence for the spec.
    The emulator's variables and a virtual environment are excluded: they only locate the engine."""
    yield from _otherwise(machine, server)
    for arm in arms:
        if arm.name in machine.own:
            found = _otherwise(machine.of(arm.name), server_of(server, arm))
            yield from (f"{arm.name}: {text}" for text in found)
    yield from left_out(server.engine)


def _otherwise(machine: Machine, server: Server) -> Iterator[str]:
    if machine.command and not machine.emulated:
        program = " ".join(_told(machine.command))
        yield f"the servers' program was {program} (--engine-command), not engine.image's own"
    said = {one["name"]: one for one in (*_of_the_template(server.engine), *server.engine.env, *keys.env(server))}
    for name, value in machine.env.items():
        known = said.get(name, {})
        follows = name in machine.follows or (machine.emulated and name in (EMULATED_RELEASE, EMULATED_SPEED))
        if not (follows or "valueFrom" in known or known.get("value") == value):
            yield f"the servers had {name} (--env), but engine.env does not: write it there, or leave it out"


def _of_the_template(engine: Engine) -> Iterator[Mapping[str, Any]]:
    for container in engine.pod_template.get("spec", {}).get("containers", ()):
        if container["name"] == SERVER:
            yield from container.get("env", ())


def as_here(job: Manifest, machine: Machine) -> Manifest:
    """The Job of a round with the plan adapted to this machine. The round is judged by that plan."""
    changed = deepcopy(job)
    for container in changed["spec"]["template"]["spec"]["initContainers"]:
        for variable in container.get("env", ()):
            if variable["name"] == ENVIRONMENT:
                variable["value"] = plan_here(RoundPlan.from_json(variable["value"]), machine).to_json()
    return changed


def plan_here(plan: RoundPlan, machine: Machine) -> RoundPlan:
    """The plan with local paths, program and address. Everything else is unchanged."""
    moved = in_all_texts(plan, machine.here)
    return replace(
        moved,
        arms=tuple(
            replace(arm, argv=argv_here(arm.engine, arm.argv, machine.of(arm.name)), port=machine.port)
            for arm in moved.arms
        ),
        files=dict(machine.files),
        results_dir=str(machine.folder / "results"),
    )


def argv_here(engine: str, argv: Sequence[str], machine: Machine) -> tuple[str, ...]:
    """A server's command. It listens on loopback only, so that no one else can reach it."""
    program = ENGINES[engine].program
    address = {"--host": LOOPBACK, "--port": str(machine.port)}
    words = argv[len(program) :]
    ours = (address.get(before, word) for before, word in zip(("", *words), words, strict=False))
    return (*(machine.command or program), *ours)


def process_environment(
    container: Mapping[str, Any], machine: Machine, given: Mapping[str, str], pod: Mapping[str, str]
) -> dict[str, str]:
    """The variables of a container's spec. `given`: values of those that come from the cluster; `pod`: the fields in
    `_FIELDS`. Raises UnsetVariableError."""
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
            raise UnsetVariableError(f"{name} comes from a {kind} of the cluster: give it with --env {name}=VALUE")
    return found


def from_secrets(servers: Sequence[Server]) -> frozenset[str]:
    """Names of the servers' variables that come from Secrets."""
    named = (*keys.to_hide(*servers), *(one for server in servers for one in keys.env(server)))
    return frozenset(one["name"].removeprefix(keys.HIDE) for one in named)


def hidden_variables(machine: Machine, given: Mapping[str, str]) -> dict[str, str]:
    """Variables that tell the client which values to hide in the servers' output: those from Secrets, and those with a
    name that looks secret."""
    names = machine.secret | {name for name in machine.env if _SECRET.search(name)}
    return {f"{keys.HIDE}{name}": given[name] for name in sorted(names) if given.get(name)}


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Expand as the kubelet does: $(NAME) is a variable's value if it exists, $$ is $."""
    return VARIABLE.sub(lambda found: variables.get(found[1], found[0]) if found[1] else "$", text)


def left_out(engine: Engine) -> Iterator[str]:
    """Parts of the user's pod template that have no effect here."""
    spec = engine.pod_template.get("spec", {})
    others = [one["name"] for one in (*spec.get("initContainers", ()), *spec.get("containers", ()))]
    if more := [name for name in others if name != "server"]:
        yield f"engine.podTemplate: {', '.join(more)} is not run here"
