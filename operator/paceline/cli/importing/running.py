"""Reads the words of a running engine from /proc in its pod, by exec with the caller's permissions."""

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from posixpath import join, normpath
from typing import Any

from paceline.cli.importing.arguments import NODES
from paceline.cli.importing.command import ROWS, STARTS, engine_in
from paceline.cli.importing.hidden import SHORTEST
from paceline.cli.importing.resource import starts
from paceline.cli.importing.secret import is_secret
from paceline.engines.importing import Note, UnansweredError
from paceline.kube import ApiError, Forbidden, Manifest, Ref, Resource, Transport, selector
from paceline.kube.resources import DEPLOYMENT, POD, REPLICA_SET

_SECRET = Resource("", "v1", "secrets", "Secret")
READ = (
    'for f in $1; do [ -e "$f" ] || continue; printf "%s%s\\n" "$0" "$f"; '
    'readlink "$f" || head -c 2000000 "$f"; done 2>/dev/null; exit 0'
)
"""A script for sh: prints $0, name and content of each file in $1."""
PROCESSES = ("/proc/[0-9]*/stat", "/proc/[0-9]*/cmdline")
TITLE = re.compile(f"({'|'.join(row.title for row in ROWS.values() if row.title)})::", re.IGNORECASE)
"""Process titles that engines set."""
PATH_FLAG = re.compile(r"--(model|[\w-]+-path)|serve")
"""Matches the word before a path. `vllm serve` takes the model without a flag."""
RELATIVE = re.compile(r"(?![/-])[\w./-]+", re.ASCII)
SHELLS_OWN = frozenset({"_", "OLDPWD", "PWD", "SHLVL"})
WRITE = "write the arguments into the container's args, and import the Deployment as a file"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineProcess:
    pid: int
    parent: int
    words: tuple[str, ...]

    @property
    def engine(self) -> tuple[str, ...]:
        """The words that start the engine, without a console script's interpreter; empty for another program."""
        found = engine_in(self.words)
        before = self.words[: found[1]] if found else ()
        is_python = before and re.fullmatch(r"python[\d.]*", PurePosixPath(before[0]).name)
        own = found and (not before or (is_python and all(word.startswith("-") for word in before[1:])))
        return self.words[len(before) :] if own else ()

    @property
    def retitled(self) -> bool:
        title = self.words[0] if self.words else ""
        return bool(TITLE.match(title) or (" " in title and STARTS.search(title)))


async def running(
    api: Transport, namespace: str, kind: str, name: str, container: str | None
) -> tuple[Manifest, list[Note]]:
    """The Deployment with its running engine's command. Raises ValueError for a pod that cannot be read."""
    pod = await (_a_pod_of if kind == "Deployment" else _pod)(api, namespace, name)
    ref = Ref(POD, namespace, pod["metadata"]["name"])
    deployment, template = await _owner(api, ref, pod)
    engine = _container(ref, template["spec"]["containers"], container)
    _must_run(ref, pod, engine["name"])
    found = topmost_engine(processes(await _files(api, ref, engine["name"], PROCESSES)), f"{engine['name']} of {ref}")
    cwd, environ, own = f"/proc/{found.pid}/cwd", f"/proc/{found.pid}/environ", "/proc/self/environ"
    relative = dict(_relative(found.engine))
    spaces = [f"/proc/{one}/ns/mnt" for one in (found.pid, "self")]
    asked = (cwd, environ, own, *spaces, *(f"{cwd}/{value}" for value in relative.values()))
    files = await _files(api, ref, engine["name"], asked)
    if len({files[space] for space in spaces if space in files}) > 1:
        raise ValueError(f"{ref}: process {found.pid} does not run in container {engine['name']}: name its own with -c")
    words, notes = list(found.engine), [_of_process(ref, found)]
    for i, value in relative.items():
        if f"{cwd}/{value}" in files:
            absolute = normpath(join(files[cwd].decode().strip(), value))
            words[i] = f"{words[i].removesuffix(value)}{absolute}"
            notes.append(Note(path=value, text=f"becomes {absolute}: the server runs in another directory"))
    here, there = _variables(files.get(own, b"")), _variables(files.get(environ, b""))
    if changed := sorted({name for name in there if there[name] != here.get(name)} - SHELLS_OWN):
        text = (
            "differs between the engine's process and the container, so it is left out: write it into spec.engine.env"
        )
        notes += [Note(path=f"environment {name}", text=text) for name in changed]
    known = await _of_secrets(api, namespace, engine)
    command = referring(words, {name: here[name] for name in known if name in here})
    named = {one["name"] for one in engine.get("env") or ()}
    used = [one for name, one in known.items() if name not in named and any(f"$({name})" in word for word in command)]
    read = {**engine, "command": command, "args": [], "env": [*(engine.get("env") or ()), *used]}
    containers = [read if one is engine else one for one in template["spec"]["containers"]]
    template = {**template, "spec": {**template["spec"], "containers": containers}}
    return {**deployment, "spec": {**deployment["spec"], "template": template}}, notes


async def _pod(api: Transport, namespace: str, name: str) -> Manifest:
    if pod := await api.get(Ref(POD, namespace, name)):
        return pod
    raise ValueError(f"namespace {namespace} has no pod {name}; name another namespace with -n")


async def _a_pod_of(api: Transport, namespace: str, name: str) -> Manifest:
    """A running pod: a ready one first, then the newest."""
    deployment = await api.get(Ref(DEPLOYMENT, namespace, name))
    if deployment is None:
        raise ValueError(f"namespace {namespace} has no Deployment {name}; name another namespace with -n")
    labels = selector(deployment["spec"]["selector"].get("matchLabels") or {})
    pods = [one for one in (await api.list(POD, namespace, labels)).items if one["status"].get("phase") == "Running"]
    pods = [one for one in pods if "deletionTimestamp" not in one["metadata"]]
    if not pods:
        raise ValueError(f"Deployment {name} has no running pod: scale it up, or import it as a file")

    def order(pod: Manifest) -> tuple[bool, str]:
        statuses = pod["status"].get("containerStatuses") or ()
        return all(one["ready"] for one in statuses), pod["metadata"]["creationTimestamp"]

    return max(pods, key=order)


async def _owner(api: Transport, ref: Ref, pod: Manifest) -> tuple[Manifest, Manifest]:
    """The pod's Deployment, and the template from which the pod was made: a rollout may have changed it since."""
    kinds, owned, found = {"ReplicaSet": REPLICA_SET, "Deployment": DEPLOYMENT}, pod, list[Manifest]()
    for kind, resource in kinds.items():
        owners = owned["metadata"].get("ownerReferences") or ()
        owner: Manifest = next((one for one in owners if one.get("controller")), {})
        if owner.get("kind") != kind:
            other = f"{owner['kind']} {owner['name']}" if owner else "nothing"
            raise ValueError(f"{ref} belongs to {other}, not to a Deployment; {NODES}")
        owned = await api.get(Ref(resource, ref.namespace, owner["name"])) or {}
        if not owned:
            raise ValueError(f"{ref}: its {kind} {owner['name']} is gone")
        found.append(owned)
    replica_set, deployment = found
    return deployment, replica_set["spec"]["template"]


def _container(ref: Ref, containers: Sequence[Manifest], name: str | None) -> Manifest:
    names = ", ".join(one["name"] for one in containers)
    meant = [one for one in containers if one["name"] == name] if name else [*containers]
    if len(meant) > 1:
        meant = [one for one in meant if starts(one)]
    if len(meant) != 1:
        raise ValueError(f"{ref} has the containers {names}: name the engine's with -c")
    return meant[0]


def _must_run(ref: Ref, pod: Manifest, container: str) -> None:
    statuses = pod["status"].get("containerStatuses") or ()
    state = next((one.get("state") or {} for one in statuses if one["name"] == container), {})
    if "running" not in state:
        why = next((f"{name}: {about.get('reason', '')}" for name, about in state.items()), pod["status"].get("phase"))
        raise ValueError(f"container {container} of {ref} does not run ({why}): name a pod that does")


async def _files(api: Transport, ref: Ref, container: str, globs: Sequence[str]) -> dict[str, bytes]:
    """Name → content of the files that exist. A random mark precedes each in the output."""
    mark = secrets.token_hex(16)
    try:
        out = await api.exec(ref, container, ("sh", "-c", READ, mark, " ".join(globs)))
    except Forbidden:
        raise
    except ApiError as error:
        why = f"could not read /proc with sh in container {container} of {ref}: {error.message:.300}"
        raise ValueError(f"{why}; try again, or {WRITE}") from error
    parts = (part.partition(b"\n") for part in out.split(mark.encode()) if part.startswith(b"/proc/"))
    return {name.decode(): content for name, _, content in parts}


def processes(files: Mapping[str, bytes]) -> dict[int, EngineProcess]:
    """Pid → process, without the reader's own."""
    found = dict[int, EngineProcess]()
    for name, content in files.items():
        pid, file = name.split("/")[2:4]
        stat = files.get(f"/proc/{pid}/stat", b"").rpartition(b")")[2].split()
        words = tuple(content.removesuffix(b"\0").decode(errors="replace").split("\0")) if content else ()
        if file == "cmdline" and stat and READ not in words:
            found[int(pid)] = EngineProcess(pid=int(pid), parent=int(stat[1]), words=words)
    return found


def topmost_engine(seen: Mapping[int, EngineProcess], where: str) -> EngineProcess:
    """The topmost engine: its workers may have the same words. Raises UnansweredError if no process shows its words."""
    engines = {pid: one for pid, one in seen.items() if one.engine or one.retitled}
    top = [one for one in engines.values() if not any(pid in engines for pid in _ancestors(one, seen))]
    match [one for one in top if one.engine] or top:
        case [one] if one.engine:
            return one
        case []:
            programs = {PurePosixPath(one.words[0].partition(" ")[0]).name for one in seen.values() if one.words}
            names = ", ".join(sorted(programs)) or "none that can be read"
            raise UnansweredError(f"{where}: no process starts an engine; programs: {names}; {WRITE}")
        case [one]:
            raise UnansweredError(f"{where}: the title of process {one.pid} does not show its arguments; {WRITE}")
        case several:
            pids = ", ".join(str(one.pid) for one in several)
            raise UnansweredError(f"{where}: the processes {pids} are separate engines; {WRITE}")


def _ancestors(one: EngineProcess, seen: Mapping[int, EngineProcess]) -> Iterator[int]:
    while (above := seen.get(one.parent)) and above.pid != one.pid:
        yield above.pid
        one = above


def _relative(words: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Index and value of words that may be relative paths in the process."""
    for i, word in enumerate(words[1:], 1):
        flag, _, value = word.partition("=") if word.startswith("--") else (words[i - 1], "", word)
        if RELATIVE.fullmatch(value) and (PATH_FLAG.fullmatch(flag) or value.startswith(("./", "../"))):
            yield i, value


def _of_process(ref: Ref, found: EngineProcess) -> Note:
    text = f"the engine's arguments are those of process {found.pid}; the container's command and args were not read"
    return Note(path=str(ref), text=text)


def _variables(environ: bytes) -> dict[str, str]:
    pairs = (one.partition("=") for one in environ.decode(errors="replace").split("\0") if one)
    return {name: value for name, _, value in pairs}


async def _of_secrets(api: Transport, namespace: str, container: Manifest) -> dict[str, Manifest]:
    """Name → variable from a Secret. For envFrom, the Secret's keys are read."""
    found = dict[str, Manifest]()
    for one in container.get("envFrom") or ():
        name = (one.get("secretRef") or {}).get("name")
        try:
            secret = await api.get(Ref(_SECRET, namespace, name)) if name else None
        except Forbidden as error:
            text = f"envFrom takes variables from the Secret {name}, which you may not read: ask for get of secrets"
            raise ValueError(f"{text} in namespace {namespace}, or {WRITE}") from error
        for key in (secret or {}).get("data") or {}:
            variable = f"{one.get('prefix', '')}{key}"
            found[variable] = {"name": variable, "valueFrom": {"secretKeyRef": {"name": name, "key": key}}}
    for variable in container.get("env") or ():
        found.pop(variable["name"], None)
        if "secretKeyRef" in (variable.get("valueFrom") or {}):
            found[variable["name"]] = variable
    return found


def referring(words: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The words as in a container, with $(NAME) for a Secret's value. A short value is replaced only as a whole word,
    or after a name that says secret."""
    by_value: dict[str, Any] = {value: name for name, value in values.items()}
    long = {value for value in by_value if len(value) >= SHORTEST}
    short = {value for value, name in by_value.items() if value and value not in long and is_secret(name)}
    alone = [rf"(?<!\w){re.escape(value)}(?!\w)" for value in short]
    pattern = "|".join([*map(re.escape, sorted(long, key=len, reverse=True)), *alone]) or r"(?!)"
    parts = (re.split(f"({pattern})", word) for word in words)
    return [
        "".join(f"$({by_value[part]})" if i % 2 else part.replace("$", "$$") for i, part in enumerate(split))
        for split in parts
    ]
