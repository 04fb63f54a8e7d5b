"""`paceline measure FILE`: measure a pool's run, or a BenchmarkRun, on this machine without a cluster."""

import argparse
import os
import platform
import signal
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from paceline.cli import measure_options, options
from paceline.cli.manifests import RefusedError, everything, is_deployment_or_run
from paceline.cli.measure_options import CannotError, Equipment
from paceline.cli.measured import end, tell, watch
from paceline.core import BUCKETS, Dataset, Scheme, by_server
from paceline.core.manifest import Manifest
from paceline.core.names import FILES, MODELS
from paceline.core.text import printable
from paceline.engines import ENGINES
from paceline.measure import emulated, models, ports, prompts, record
from paceline.measure.devices import DevicesError
from paceline.measure.emulated import EmulatorError
from paceline.measure.machine import Machine, UnsetVariableError, from_secrets, left_out, read_by_engines
from paceline.measure.models import DownloadError, LocalModels, MissingError
from paceline.measure.ports import NoPortError
from paceline.measure.question import PoolQuestion, QuestionError, asked, found_by, found_wrong, paths, run_to_measure
from paceline.measure.record import RecordError
from paceline.measure.rounds import LocalRun
from paceline.plan.objects import finished
from paceline.plan.speeds import Size, size_in_name
from paceline.pods.fetch.request import FetchError
from paceline.pods.prompt_file import DatasetError, read_prompts

VIEW = "the view of a run needs rich: pip install rich"

_CANNOT = (
    CannotError,
    DatasetError,
    DevicesError,
    EmulatorError,
    FetchError,
    MissingError,
    NoPortError,
    RecordError,
    UnsetVariableError,
)
"""Errors that prevent measuring FILE here, each with a sentence."""

_NOTES = """\
The rounds are those of the operator: the same wrapper, client, checks, order of arms, gate and records. FILE may be
measured again with the same -o: after an interruption (Ctrl-C, a crash) it continues at the same round. Each
server's command is the one that would be served, except for its program (see --engine-command), for paths, and for
the address: it listens on 127.0.0.1 only.
For a pool with `search` two runs are measured: the search, whose file has .search in its name, and in the file of -o a
gate on what was found; if the search finds nothing, that is the end.
Exit: 0 Promote, a measured sweep, or a BenchmarkRun with `search` that has found something; 10 Reject;
11 Inconclusive; 12 Error; 1 if FILE cannot be measured here; 130 and 143 if it was interrupted.
"""

_OF_THE_CLUSTER = {Scheme.CLAIM: "on a claim of the cluster", Scheme.IMAGE: "in an image"}
"""Sources of models that cannot be downloaded from here."""
_NOT_EMULATED = {**_OF_THE_CLUSTER, **dict.fromkeys(BUCKETS, "in a bucket, which the emulator's hub has not")}
"""Those that cannot be made up, either."""


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "measure",
        epilog=_NOTES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_file(parser, "YAML or JSON with one of the two; - for stdin")
    parser.add_argument("--pool", help="the pool to measure; may be left out if there is only one")
    parser.add_argument(
        "--emulated",
        action="store_true",
        help="no GPU, engine or model: an emulator of the engine, with published speeds of the target or, if there "
        "are none, of a generic model of its size; the result says so",
    )
    parser.add_argument(
        "--emulated-size",
        type=_size,
        metavar="SIZE",
        help="with --emulated, the target's parameters, such as 70B or 30B-A3B [from its config.json or its name]",
    )
    parser.add_argument(
        "--models",
        type=Path,
        metavar="DIR",
        help="local models: a hub client's cache, or folders OWNER/NAME and BUCKET/PREFIX; for pvc://CLAIM/PATH the "
        "folder PATH. "
        "Without it they are downloaded [~/.cache/paceline/models]",
    )
    parser.add_argument(
        "--prompts",
        type=_prompts,
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="the file of a dataset that the cluster has on a claim or in a ConfigMap; repeat for more. Not needed "
        "for a ConfigMap that is in FILE, too",
    )
    parser.add_argument(
        "--venv",
        action="append",
        default=[],
        metavar="[ARM=]DIR",
        help="virtual environment that the engine is installed in; with ARM=, that of a candidate with an engine of "
        "its own, or of the baseline and all that share its engine; repeat for more",
    )
    parser.add_argument(
        "--engine-command",
        action="append",
        default=[],
        metavar="[ARM=]COMMAND",
        help="the command that starts the engine, instead of the server's own program; ARM= as in --venv",
    )
    parser.add_argument(
        "--env",
        type=_variable,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="environment variable of the servers; repeat for more",
    )
    parser.add_argument("--devices", type=_devices, default=(), metavar="0,1", help="GPUs to use, by number")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("run.yaml"), metavar="FILE", help="the run and its state [run.yaml]"
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="page to write [report.html next to the run]")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """The verdict's exit code; 1 with a sentence on stderr if FILE cannot be measured here."""
    before = signal.signal(signal.SIGTERM, _terminated)
    try:
        return _measure(args)
    except (RefusedError, QuestionError) as refused:
        return _failed(*(f"{args.file}: {line}" if isinstance(refused, QuestionError) else line
                         for line in str(refused).splitlines()))  # fmt: skip
    except DownloadError as error:  # the program has already printed it
        return _failed(f"paceline measure: {error}") if args.emulated else 1
    except _CANNOT as error:
        return _failed(f"paceline measure: {error}")
    except BrokenPipeError:  # the reader closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _interrupted(args, 1)
    except OSError as error:
        kept = [f"measured so far: {args.output}"] if args.output.is_file() else []
        return _failed(f"paceline measure: {error}", *kept)
    except ImportError as error:
        return _failed(f"paceline measure: {VIEW} ({error})")
    except KeyboardInterrupt:
        return _interrupted(args, 130)
    except SystemExit as ended:
        return _interrupted(args, int(ended.code or 0))
    finally:
        signal.signal(signal.SIGTERM, before)


def _measure(args: argparse.Namespace) -> int:
    objects = everything(args.file)
    question = asked(_only(objects), args.pool)
    ours = measure_options.equipment_of(args, question.server, question.arms)
    page = _page(args)
    folder = record.folder_of(args.output).resolve()
    with ExitStack() as stack:
        lock = record.lock(
            folder, lambda: tell(f"{folder}: the interrupted measurement is still stopping; waiting for it")
        )
        stack.callback(os.close, lock)
        if not page.parent.is_dir() or not os.access(page.parent, os.W_OK):
            raise CannotError(f"--report: {page.parent} is not a folder that can be written to")
        found = _found(args, question, objects, folder, lock)
        mark, speed = _emulated(args, question, found)
        if mark:
            print(printable(mark), flush=True)
        for text, blocks in found_wrong(question, {} if speed else found.facts):  # an invented model has no faults
            if blocks:
                raise QuestionError(text)
            tell(text)
        for text in left_out(question.server.engine):
            tell(f"spec.{text}")
        port = stack.enter_context(ports.reserved(ENGINES[question.server.engine.type].port))
        ours = ours.with_variables(speed)
        machine = _machine(args, question, found, folder, ours, port, mark)
        asking = partial(run_to_measure, question, found.commits, datetime.now(UTC))
        if not question.searches:
            return end([_measured(asking(), args.output, machine, lock)], args.output, page)
        beside = record.search_of(args.output)
        _refuse_a_gate_without_search(args.output, beside)
        search = _measured(asking(), beside, machine, lock)
        if not found_by(search):
            return end([search], beside, page)
        gate = asking(search)
        compared = " and ".join(arm["name"] for arm in gate["spec"]["arms"][1:])
        tell(f"{beside}: found {found_by(search)}; a gate compares {compared} with the baseline, on other prompts")
        return end([search, _measured(gate, args.output, machine, lock)], args.output, page)


def _refuse_a_gate_without_search(file: Path, beside: Path) -> None:
    """Raises RecordError if the file already exists before the search has a winner: it belongs to another question."""
    there, search = record.load_run(file), record.load_run(beside)
    if there and not (search and found_by(search)):
        raise RecordError(
            f"{file}: it holds {there['metadata']['name']}, but no search in {beside} has found a candidate for it: "
            "name another file with -o, or remove it"
        )


def _measured(wanted: Manifest, file: Path, machine: Machine, lock: int) -> Manifest:
    """The finished run, as in the file. Each file has its own folder for logs next to it."""
    machine = replace(machine, folder=record.folder_of(file).resolve())
    going = record.gone_on_with(record.load_run(file), wanted, machine.note, file)
    rounds = LocalRun(run=going, file=file, machine=machine, environ=os.environ, lock=lock)
    if finished(going):
        tell(f"{file}: it is finished; remove it to measure it again")
    else:
        rounds.check()
        if not machine.mark:  # an emulated run shows its mark anyway
            tell(machine.note)
        watch(rounds)
    return rounds.run


def _page(args: argparse.Namespace) -> Path:
    """The report's path. Raises CannotError if files would overwrite each other or cannot be written."""
    run: Path = args.output
    page: Path = args.report or run.with_name("report.html") if run.name else run
    if not run.name or run.is_dir() or run.suffix == ".d":
        raise CannotError(f"-o: {run} is a folder, or named like the logs' folder: name a file, such as run.yaml")
    for written in (run, record.search_of(run)):
        if args.file != "-" and written.exists() and written.samefile(args.file):
            raise CannotError(f"-o: {written} is the file that is measured, and would be overwritten: name another")
    if page.resolve() in (run.resolve(), record.search_of(run).resolve()) or page.is_dir():
        raise CannotError(f"--report: {page} is a folder, or the file of the run: name another file")
    return page


def _only(objects: tuple[Manifest, ...]) -> Manifest:
    found = [one for one in objects if is_deployment_or_run(one)]
    if len(found) > 1:
        names = ", ".join(f"{one['kind']} {one['metadata']['name']}" for one in found)
        raise QuestionError(f"has {names}: only a file with one of them can be measured")
    return found[0]


def _found(
    args: argparse.Namespace, question: PoolQuestion, objects: tuple[Manifest, ...], folder: Path, lock: int
) -> LocalModels:
    """The question's models and its prompts, unless built in."""
    of_the_hub = [one for one in question.datasets if one.of_the_hub]
    others = [one for one in question.datasets if not one.of_the_hub]
    files = prompts.local_prompt_files(others, dict(args.prompts), objects, args.models, folder)
    for one in others:
        read_prompts(files[one.source, one.revision], one.address, one.turns)
    if args.models is not None:
        found = models.in_directory(question.models, of_the_hub, args.models.resolve())
    else:
        found = _downloaded(args, question, of_the_hub, folder, lock)
    return LocalModels(commits=found.commits, places={**found.places, **files}, facts=found.facts)


def _downloaded(
    args: argparse.Namespace, question: PoolQuestion, datasets: list[Dataset], folder: Path, lock: int
) -> LocalModels:
    for model in question.models:
        if where := (_NOT_EMULATED if args.emulated else _OF_THE_CLUSTER).get(model.address.scheme):
            raise MissingError(f"{model.source}: it is {where}; name a local copy with --models DIR")
    options: dict[str, Any] = {"trust_remote_code": question.server.engine.trust_remote_code}
    if args.emulated:
        kinds = emulated.kinds_on_hub(question.server.target, question.arms)
        with emulated.hub(folder, lock, kinds, _size_of(args, question)) as environ:
            # The emulator's invented commits are not worth showing.
            log = folder / "fetch.log"
            return models.downloaded(question.models, datasets, folder / "models", environ, lock, **options, log=log)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return models.downloaded(question.models, datasets, home / "paceline" / "models", os.environ, lock, **options)


def _emulated(args: argparse.Namespace, question: PoolQuestion, found: LocalModels) -> tuple[str, Mapping[str, str]]:
    """The mark of an emulated run, and the server variables that an invented target needs."""
    if not args.emulated:
        return "", {}
    target = question.server.target
    size = args.emulated_size if args.models else _size_of(args, question)
    return emulated.mark(question.server, found.places[target.source, target.revision], size)


def _size_of(args: argparse.Namespace, question: PoolQuestion) -> Size | None:
    return args.emulated_size or size_in_name(question.server.target.source)


def _machine(
    args: argparse.Namespace,
    question: PoolQuestion,
    found: LocalModels,
    folder: Path,
    ours: Equipment,
    port: int,
    mark: str,
) -> Machine:
    servers = [server for server, _ in by_server(question.server, question.arms)]
    adapters = [ENGINES[server.engine.type] for server in servers]
    here = {str(place): place for place in found.places.values()}
    if odd := next((place for place in here if any(char in place for char in "\"'\\\n")), None):
        raise CannotError(f"{odd}: a path with quotes or backslashes cannot be in a server's command; rename it")
    said = (one["name"] for adapter, server in zip(adapters, servers, strict=True) for one in adapter.env(server))
    given = {*ours.program.env, *said}
    return Machine(
        name=platform.node() or "localhost",
        folder=folder,
        port=port,
        command=ours.program.command,
        env=ours.program.env,
        own=ours.own,
        secret=from_secrets(servers),
        inherited={} if args.emulated else read_by_engines(os.environ, given),
        devices=ours.devices,
        paths={
            **paths(question, found.commits, found.places),
            MODELS: str((args.models or folder / "models").resolve()),
            **{one.jit_cache: str(folder / "kernels") for one in adapters},
            FILES: str(folder / "files"),
        },
        files={one.name: str(found.places[one.source, one.revision]) for one in question.datasets},
        emulated=args.emulated,
        mark=mark,
    )


def _failed(*lines: str) -> int:
    for line in lines:
        tell(line)
    return 1


def _interrupted(args: argparse.Namespace, code: int) -> int:
    tell(f"interrupted; the same command continues from {args.output}")
    return code


def _terminated(*_: object) -> NoReturn:
    sys.exit(143)


def _variable(text: str) -> tuple[str, str]:
    """The `type` of an argparse option."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE; got {text}")
    return name, value


def _prompts(text: str) -> tuple[str, Path]:
    """The `type` of an argparse option."""
    name, _, file = text.partition("=")
    if not name or not file:
        raise argparse.ArgumentTypeError(f"must be NAME=FILE, the name of a dataset and its file; got {text}")
    return name, Path(file)


def _size(text: str) -> Size:
    """The `type` of an argparse option."""
    if not text.startswith("-") and (found := size_in_name(text)):
        return found
    raise argparse.ArgumentTypeError(f"must be billions of parameters, such as 70B or 30B-A3B; got {text}")


def _devices(text: str) -> tuple[str, ...]:
    """The `type` of an argparse option."""
    found = tuple(text.split(","))
    if not all(one.isdecimal() for one in found) or len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(f"must be different numbers, such as 0,1; got {text}")
    return found
