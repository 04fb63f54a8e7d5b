"""Converts a Deployment to a SpeculativeDeployment that serves the same model."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from posixpath import normpath
from typing import Any, TypeVar

from paceline.api import Problem
from paceline.cli.importing.arguments import REQUESTS, Told, carried_arguments, readable
from paceline.cli.importing.command import Launch, launch, literals
from paceline.cli.importing.environment import KEYS, Environment, secret_of, split_environment
from paceline.cli.importing.hidden import hide, masked, secrets
from paceline.cli.importing.models import claim_of_model, mounts, source
from paceline.cli.importing.pod import (
    RequestedAccelerator,
    accelerator,
    carried_template,
    longest_start,
    placed,
    unread,
)
from paceline.cli.importing.pruned import pruned
from paceline.cli.importing.secret import MASK
from paceline.cli.importing.speculation import proposed, read_speculation
from paceline.core import PromotionSpec, Scheme
from paceline.core.manifest import Manifest
from paceline.core.text import duration_text
from paceline.engines import ENGINES
from paceline.engines.arguments import one_word
from paceline.engines.images import RELEASE
from paceline.engines.importing import Note, Speculating, UnansweredError

_T = TypeVar("_T")
_API_VERSION = "paceline.dev/v1alpha1"
CONCURRENCY = (1, 16)
OFFICIAL = [repository for row in ENGINES.values() for repository in row.importing.repositories]
"""Image repositories whose tags are engine versions; tags elsewhere may count other releases."""
MODELSCOPE = [row.importing.other_hub for row in ENGINES.values() if row.importing.other_hub]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The user's options; "" and None mean that the Deployment decides."""

    name: str = ""
    pool: str = "main"
    engine_version: str = ""
    product: str = ""
    gpus: int | None = None
    target: str = ""
    served_name: str = ""
    head: str = ""
    algorithm: str = "EAGLE3"
    cache_claim: str = ""
    cache_size: str = ""
    concurrency: tuple[int, ...] = ()
    api_key_secret: str = ""
    """NAME/KEY"""
    live: bool = False


UNKNOWN_RELEASE, UNKNOWN_MODEL = "999.0.0", "hf://OWNER/NAME"
"""Placeholders for missing answers, so that one question does not hide another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    manifest: Manifest
    notes: tuple[Note, ...]
    problems: tuple[Problem, ...]
    """What a person must change before the API server accepts it."""


def starts_an_engine(deployment: Mapping[str, Any]) -> bool:
    """True also for a script that cannot be read."""
    return any(map(starts, _containers(deployment)))


def starts(container: Mapping[str, Any]) -> bool:
    try:
        return launch(container) is not None
    except UnansweredError:
        return True


def _started(deployment: Mapping[str, Any]) -> tuple[Mapping[str, Any], Launch] | None:
    """The first container that starts an engine."""
    found = ((container, launch(container)) for container in _containers(deployment))
    return next(((container, one) for container, one in found if one), None)


def _containers(deployment: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    pod = ((deployment.get("spec") or {}).get("template") or {}).get("spec") or {}
    return pod.get("containers") or ()


def imported(deployment: Mapping[str, Any], options: Options) -> Imported:
    """Raises UnansweredError with all questions that only a person can answer."""
    started = _started(deployment)
    if started is None:
        raise UnansweredError("no container starts an engine by a command that is known: docs/migration.md")
    container, run = started
    questions = list[str]()

    def answered(ask: Callable[[], _T], otherwise: _T) -> _T:
        try:
            return ask()
        except UnansweredError as error:
            questions.append(str(error))
            return otherwise

    def place(named: str, option: str) -> str:
        downloaded = run.downloads.get(normpath(named))
        return downloaded[0] if downloaded else source(named, found, option)

    template = deployment["spec"]["template"]
    pod, at = template["spec"], f"containers[{container['name']}]"
    image = str(container.get("image", ""))
    version = options.engine_version or answered(lambda: _version(run.engine, image), UNKNOWN_RELEASE)
    said = carried_arguments(run.engine, version, [one_word(word) or word for word in run.args], options.target)
    variables = _variables(run, container)
    env = split_environment(run.engine, variables, f"{at}.env")
    found = mounts(pod, container)
    literal = literals(variables)
    name = options.name or _named(str(deployment["metadata"]["name"]))
    taken = accelerator(pod, container, options.product, options.gpus)
    questions += [*_in_one_word(run, container), *said.questions, *taken.questions]
    target = UNKNOWN_MODEL
    if model := options.target or _of_this_hub(literal, said.model, questions):
        target = answered(lambda: place(model, "--target"), UNKNOWN_MODEL)
    served = answered(lambda: _served(said, target, options), "unknown")
    where = claim_of_model(name, target, found, literal, options.cache_claim, options.cache_size)
    none = Speculating()
    drafts = answered(
        lambda: _speculation(run.engine, version, said, options, lambda named: place(named, "--head")), none
    )
    kept = [word for words in said.args for word in words] + [word for one in said.speculative for word in one.values]
    kept += [str(one.get("value", "")) for one in env.env]
    overlay, notes = carried_template(template, container, (run.engine, version), taken, where.mount, kept)
    keys, unkeyed = _keys(run.engine, said, variables, env, options.api_key_secret)
    revisions, draft = dict(run.downloads.values()), drafts.draft or {}
    spec: Manifest = {
        **({} if options.live else {"suspend": True}),
        "target": _filled({"source": target, "revision": _revision(said, target, revisions), "servedName": served}),
        "draft": _filled({"revision": revisions.get(str(draft.get("source")), ""), **draft}),
        "engine": _engine(
            run.engine, version, container, said, {**keys, "env": _plain(env.env), "podTemplate": overlay}
        ),
        "accelerator": _accelerator(taken, said),
        **placed(template["spec"], taken),
        "cache": _filled({**where.field, "env": _plain(env.fetch), "tokenSecretRef": dict(env.token or {})}),
        **({"candidates": [dict(one) for one in drafts.candidates]} if drafts.candidates else {}),
        "pools": [_pool(deployment, said, options)],
        **_promotion(longest_start(deployment, container)),
    }
    metadata = _filled({"name": name, "namespace": deployment["metadata"].get("namespace", "")})
    manifest = {"apiVersion": _API_VERSION, "kind": "SpeculativeDeployment", "metadata": metadata, "spec": spec}
    manifest, out, left = pruned(manifest)
    every = (
        *run.notes,
        *said.notes,
        *_of_names(deployment, name, version, container, options),
        *_of_target(said, options),
        *drafts.notes,
        *_of_port(said, container, run.engine),
        *env.notes,
        *where.notes,
        *notes,
        *out,
        *unread(deployment),
        *_of_pool(deployment, said, options),
    )
    manifest, told_of, problems = hide(manifest, every, left, secrets(deployment["spec"]["template"]))
    problems = [*unkeyed, *problems]
    if questions:
        follow: list[str] = ["spec.engine.args", "spec.pools"] if version == UNKNOWN_RELEASE else []
        follow += [] if target != UNKNOWN_MODEL else ["spec.target"]
        follow += ["spec.accelerator"] if taken.questions else []
        follow += ["spec."] if drafts is none else []
        also = [str(problem) for problem in problems if not problem.path.startswith(tuple(follow))]
        raise UnansweredError("\n".join([*map(masked, questions), *also]))
    return Imported(manifest=manifest, notes=tuple(dict.fromkeys(told_of)), problems=tuple(problems))


def _in_one_word(run: Launch, container: Mapping[str, Any]) -> Iterator[str]:
    for word in run.args:
        if whole := one_word(word):
            lists = ((field, list(container.get(field) or ())) for field in ("args", "command"))
            place = next((f"{field}[{words.index(word)}]" for field, words in lists if word in words), "an argument")
            yield f"{place} is one argument with a space: {readable([word])}; split it: {readable([whole])}"


def _served(said: Told, target: str, options: Options) -> str:
    """The served name: that of the option or the flag; without them the engine serves its model argument's name."""
    name = options.served_name or (said.served[0] if said.served else said.model) or target.rpartition("://")[2]
    if "$(" in name:
        raise UnansweredError(f"servers would answer to {name}, whose value is not known; set --served-name NAME")
    return name


def _revision(said: Told, target: str, downloaded: Mapping[str, str]) -> str:
    return (said.revision or downloaded.get(target, "")) if target.startswith(Scheme.HUB) else ""


def _variables(run: Launch, container: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The script's variables, then the container's own. A variable set to another one without a literal value copies
    that one's source."""
    own = {str(one["name"]): one for one in container.get("env") or ()}
    exported = list[Mapping[str, Any]]()
    for name, value in run.env.items():
        other = own.get(value[2:-1], {}) if value.startswith("$(") else {}
        exported.append({**other, "name": name} if other else {"name": name, "value": value})
    return [*exported, *(one for name, one in own.items() if name not in run.env)]


def _of_this_hub(literal: Mapping[str, str], model: str, questions: list[str]) -> str:
    """The model; if ModelScope has it, "" and a question."""
    for variable in MODELSCOPE:
        if literal.get(variable, "").lower() in ("1", "true") and not model.startswith("/"):
            text = (
                f"{variable} is set, so {model} is a model of ModelScope, which is not a source here; say where it is"
            )
            questions.append(f"{text} with --target hf://OWNER/NAME or pvc://CLAIM/PATH")
            return ""
    return model


def _version(engine: str, image: str) -> str:
    repository, _, tag = image.partition("@")[0].rpartition(":")
    match = re.fullmatch(RELEASE, tag)
    first, *_ = ENGINES[engine].importing.repositories
    if match and first.partition("-")[0] in repository.rpartition("/")[2]:
        return match[1]
    raise UnansweredError(f"the image {image} does not tell the release of {engine}; set --engine-version")


def _named(name: str) -> str:
    return re.sub(r"[^a-z0-9-]", "-", name.lower()).lstrip("-0123456789").rstrip("-")


def _speculation(engine: str, version: str, said: Told, options: Options, place: Callable[[str], str]) -> Speculating:
    """The Deployment's speculation and the `--head` option."""
    found = read_speculation(engine, version, said.speculative, place, said.model)
    if found.draft and not options.head:
        return found
    offered = proposed(engine, options.head, options.algorithm)
    own = [{**one, "draft": dict(found.draft or {})} for one in found.candidates]
    return Speculating(
        draft=offered.draft, candidates=(*own, *offered.candidates), notes=(*found.notes, *offered.notes)
    )


def _engine(engine: str, version: str, container: Mapping[str, Any], said: Told, more: Manifest) -> Manifest:
    args = [word for words in said.args for word in words]
    return _filled(
        {
            "type": engine,
            "version": version,
            "image": container["image"],
            "args": args,
            "trustRemoteCode": said.trusts,
            **more,
        }
    )


def _pool(deployment: Mapping[str, Any], said: Told, options: Options) -> Manifest:
    most = said.most_requests or max(CONCURRENCY)
    levels = options.concurrency or tuple(dict.fromkeys(min(level, most) for level in CONCURRENCY))
    return {
        "name": options.pool,
        "replicas": _replicas(deployment) if options.live else 0,
        "load": [{"concurrency": list(levels)}],
    }


def _promotion(seconds: int) -> Manifest:
    """spec.promotion, set only if a start may take longer than Paceline's default deadline."""
    usual = PromotionSpec().progress_deadline.total_seconds()
    return {"promotion": {"progressDeadline": duration_text(seconds)}} if seconds > usual else {}


def _filled(fields: Manifest) -> Manifest:
    """The fields that are not empty."""
    return {key: value for key, value in fields.items() if value not in ("", [], {}, False)}


def _plain(variables: Sequence[Mapping[str, Any]]) -> list[Manifest]:
    return [dict(one) for one in variables]


def _accelerator(taken: RequestedAccelerator, said: Told) -> Manifest:
    count = taken.field["count"]
    return {**taken.field, **({} if said.tensor_parallel == count else {"tensorParallelSize": said.tensor_parallel})}


def _keys(
    engine: str, said: Told, variables: Sequence[Mapping[str, Any]], env: Environment, secret: str
) -> tuple[Manifest, list[Problem]]:
    """The server's keys. A person must put a literal key into a Secret: without it the server would be open to
    everybody."""
    keys, problems = dict[str, Any](), list[Problem]()
    if env.api_key:
        keys["apiKeySecretRef"] = dict(env.api_key)
    if secret:
        name, _, key = secret.partition("/")
        keys["apiKeySecretRef"] = {"name": name, "key": key}
    in_a_variable = next((str(one.get("value", "")) for one in variables if KEYS.get(one["name"]) == engine), "")
    for flag, word, field in (
        ("--api-key", said.api_key or in_a_variable, "apiKeySecretRef"),
        ("--admin-api-key", said.admin_key, "adminKeySecretRef"),
    ):
        if found := secret_of(word, variables):
            keys.setdefault(field, dict(found))
        elif word and field not in keys:
            name = flag if word != in_a_variable else next(iter(KEYS))
            text = (
                f"{name} {MASK} is written out in the Deployment, but not here: put it into a Secret and name the "
                "Secret"
            )
            more = ", or set --api-key-secret NAME/KEY" if field == "apiKeySecretRef" else ""
            problems.append(Problem(path=f"spec.engine.{field}", message=text + more))
    return keys, problems


def _of_names(
    deployment: Mapping[str, Any], name: str, version: str, container: Mapping[str, Any], options: Options
) -> Iterator[Note]:
    was, image = str(deployment["metadata"]["name"]), str(container.get("image", ""))
    if not options.name and name != was:
        yield Note(path=f"metadata.name {was}", text=f"becomes {name}, as names of Services are made of it; see --name")
    repository = image.partition("@")[0].rpartition(":")[0].rpartition("/")[2]
    if not options.engine_version and repository not in OFFICIAL:
        text = f"the release is assumed to be {version}, from the tag; if that is your own number, set --engine-version"
        yield Note(path=f"image {image}", text=text)
    for other in deployment["spec"]["template"]["spec"]["containers"]:
        if other["name"] != container["name"] and starts(other):
            text = "starts an engine, too: it runs unchanged next to every server, but in no round"
            yield Note(path=f"containers[{other['name']}]", text=text)


def _of_target(said: Told, options: Options) -> list[Note]:
    notes = list[Note]()
    if options.target and options.target.removeprefix("hf://") != said.model:
        notes.append(Note(path=said.model or "--target", text=f"the model is {options.target}, as you say"))
    if options.served_name and said.served and options.served_name != said.served[0]:
        text = f"the name is {options.served_name}, as you say"
        notes.append(Note(path=f"--served-model-name {said.served[0]}", text=text))
    elif len(said.served) > 1:
        text = f"Paceline's servers answer to one name, {said.served[0]}"
        notes.append(Note(path=f"--served-model-name {' '.join(said.served)}", text=text))
    return notes


def _of_port(said: Told, container: Mapping[str, Any], engine: str) -> Iterator[Note]:
    own = ENGINES[engine].port
    listened = int(said.port) if said.port.isdecimal() else own
    if listened != own:
        text = f"servers listen at {own}, a port named http: a Service that keeps its name needs targetPort http"
        yield Note(path=f"--port {said.port}", text=text)
    for one in container.get("ports") or ():
        if one["containerPort"] != listened:
            text = f"{one['containerPort']} is left out: the engine's container has only the port that answers"
            yield Note(path=f"ports[{one.get('name', one['containerPort'])}]", text=text)
            continue
        if one.get("name", "http") != "http":
            text = f"the port is called http here: a Service or PodMonitor that names {one['name']} must name http"
            yield Note(path=f"ports[{one['name']}]", text=text)
        if "hostPort" in one:
            text = f"{one['hostPort']} is left out: the engine takes no port of the node"
            yield Note(path=f"ports[{one.get('name', one['containerPort'])}].hostPort", text=text)


def _replicas(deployment: Mapping[str, Any]) -> int:
    """1 if missing or null."""
    given = deployment["spec"].get("replicas")
    return 1 if given is None else int(given)


def _of_pool(deployment: Mapping[str, Any], said: Told, options: Options) -> list[Note]:
    notes = list[Note]()
    if said.most_requests is None:
        text = "is not set: Paceline's servers take 48 at a time, or twice the largest concurrency if that is more"
        notes.append(Note(path=" or ".join(REQUESTS), text=f"{text}; set yours in spec.engine.args"))
    if not options.live:
        text = f"{_replicas(deployment)} in the Deployment, 0 here, and suspend: true: the Deployment is not disturbed"
        notes.append(Note(path="spec.replicas", text=f"{text}; docs/migration.md has the steps that follow"))
    if not options.concurrency:
        text = "pools[0].load is a guess; write how many requests your servers have at a time"
        notes.append(Note(path="concurrency", text=text))
    return notes
