"""`paceline validate FILE…`: finds what the API server and the engine would refuse, without either."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from paceline import api
from paceline.api import Problem, problems
from paceline.api.problems import is_ours
from paceline.api.text import documents, field_place, nodes
from paceline.cli import options
from paceline.cli.profiles import PROFILE, is_a, missing, profile_for, resolved_profile
from paceline.cli.unchecked import unchecked, unnamed
from paceline.core import DeploymentSpec, RunSpec
from paceline.core.text import printable
from paceline.engines import refusals_of_spec

SUFFIXES = (".json", ".yaml", ".yml")
_READ: Mapping[str, Callable[[Mapping[str, Any]], DeploymentSpec | RunSpec]] = {
    "SpeculativeDeployment": api.deployment,
    "BenchmarkRun": api.run,
}
OUTPUTS = ("text", "json", "github")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A file, its kinds of ours, and the findings."""

    file: str
    kinds: tuple[str, ...] = ()
    found: tuple[Problem, ...] = ()

    @property
    def problems(self) -> list[Problem]:
        return [problem for problem in self.found if not problem.note]

    @property
    def notes(self) -> list[Problem]:
        return [problem for problem in self.found if problem.note]


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "validate",
        epilog="Prints one problem per line, as FILE:LINE:COLUMN: spec.path: message. Standard error says `valid`, "
        "and what was not checked. Documents of other kinds are ignored. -o github writes annotations of a "
        "workflow. Exit: 0 if there are no problems, 1 otherwise.",
    )
    options.add_files(
        parser, "YAML or JSON, any number of documents; a directory: its .yaml, .yml and .json files; - for stdin"
    )
    parser.add_argument("-R", "--recursive", action="store_true", help="search directories recursively")
    parser.add_argument(
        "--models",
        type=Path,
        metavar="DIR",
        help="run preflight, too, on a hub client's cache or a directory of OWNER/NAME; reads config.json and the "
        "headers of safetensors files",
    )
    parser.add_argument("-o", "--output", choices=OUTPUTS, default="text", help="output format")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    texts = [one for name in args.files for one in _texts(name, args.recursive)]
    profiles = [profile for one in texts for profile in _profiles(one.text)]
    checked = [_of_file(one, args.models, profiles) for one in texts]
    if args.output == "json":
        print(json.dumps([_entry(one.file, problem) for one in checked for problem in one.problems], indent=2))
    elif args.output == "github":
        for one in checked:
            for problem in one.found:
                print(_annotation(one.file, problem))
    else:
        for one in checked:
            for problem in one.problems:
                print(_printable(line(one.file, problem)))
            for note in one.notes:
                print(_printable(line(one.file, note)), file=sys.stderr)
    for one in checked:
        if one.kinds and not one.problems:
            print(_printable(f"{one.file}: valid ({_counted(one.kinds)})"), file=sys.stderr)
    return 1 if any(one.problems for one in checked) else 0


def line(file: str, problem: Problem) -> str:
    """`FILE:LINE:COLUMN: spec.path: message`, like a compiler."""
    where = f"{file}:{problem.line}:{problem.column}" if problem.line else file
    return f"{where}: {'note: ' if problem.note else ''}{problem}"


def _entry(file: str, problem: Problem) -> dict[str, Any]:
    where = {"line": problem.line, "column": problem.column} if problem.line else {}
    return {"file": file, **where, "path": problem.path, "message": problem.message}


def _annotation(file: str, problem: Problem) -> str:
    """A workflow command of GitHub Actions, shown at that line of a pull request."""
    level = "notice" if problem.note else "error"
    escaped = printable(file).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    where = f",line={problem.line},col={problem.column}" if problem.line else ""
    return f"::{level} file={escaped}{where}::{printable(str(problem)).replace('%', '%25')}"


def _counted(kinds: tuple[str, ...]) -> str:
    return ", ".join(f"{count} {kind}{'s' * (count > 1)}" for kind, count in Counter(kinds).items())


def _with_profile(
    manifest: Mapping[str, Any], name: str, models: Path | None, profiles: Collection[Any]
) -> list[Problem]:
    profile = profile_for(manifest, profiles)
    if profile is None:
        return [missing(name)]
    try:
        merged = resolved_profile(manifest, profile)
    except api.InvalidManifestError as locked:
        return locked.problems
    of = f" (with the values of BenchmarkProfile {name})"
    return [one if one.note else replace(one, message=one.message + of) for one in findings_of(merged, models)]


def _printable(line: str) -> str:
    """One line without the file's control characters; characters that the terminal's encoding lacks are escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    return printable(line).encode(encoding, "backslashreplace").decode(encoding)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileText:
    """A file's content."""

    file: str
    text: str = ""
    fault: str = ""
    """Why it could not be read."""
    named: bool = True
    """Whether it was named itself, rather than found in a directory."""


def _texts(name: str, recursive: bool) -> Iterator[FileText]:
    """The file, or the files of a directory."""
    if not Path(name).is_dir():
        yield _text(name, named=True)
        return
    paths = sorted(path for path in Path(name).glob("**/*" if recursive else "*") if path.suffix in SUFFIXES)
    if not paths:
        yield FileText(file=name, fault=f"has no file that ends in {', '.join(SUFFIXES)}")
    for path in paths:
        yield _text(str(path), named=False)


def _text(file: str, *, named: bool) -> FileText:
    try:
        return FileText(file=file, text=read_file(file), named=named)
    except (OSError, ValueError) as error:
        return FileText(file=file, fault=options.reason(error))


def _profiles(text: str) -> list[Any]:
    """The profiles in a text; empty if it is not YAML."""
    try:
        return [one for one in documents(text) if is_a(PROFILE, one)] if PROFILE in text else []
    except (ValueError, yaml.YAMLError, RecursionError):
        return []


def _of_file(one: FileText, models: Path | None, profiles: Collection[Any]) -> Checked:
    """The findings of a file. If nothing in it was checked, and it was named itself, stderr says so."""
    if one.fault:
        return Checked(file=one.file, found=(Problem(path="", message=one.fault),))
    checked = _of_text(one.file, one.text, models, profiles)
    if one.named and not checked.found and not checked.kinds:
        print(f"{one.file}: it has no {', '.join(_READ)} or {PROFILE}: nothing in it was checked", file=sys.stderr)
    return checked


def read_file(file: str) -> str:
    """The text of a file, or of stdin for `-`. Raises OSError, and ValueError if it is not text."""
    return sys.stdin.read() if file == "-" else Path(file).read_text()


def of_text(text: str, beside: Collection[Any] = ()) -> tuple[Problem, ...]:
    """The problems and notes of all our documents; invalid YAML is a problem. Profiles are looked up in the text, then
    in `beside`."""
    return _of_text("", text, None, [*_profiles(text), *beside]).found


def _of_text(file: str, text: str, models: Path | None, profiles: Collection[Any]) -> Checked:
    try:
        ours = [
            (document, node) for document, node in zip(documents(text), nodes(text), strict=True) if is_ours(document)
        ]
    except yaml.MarkedYAMLError as error:
        return Checked(file=file, found=(_no_yaml(error),))
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        return Checked(file=file, found=(Problem(path="", message=options.reason(error)),))
    placed = list[Problem]()
    for i, (document, node) in enumerate(ours):
        where = f" (document {i + 1} of {len(ours)})" if len(ours) > 1 else ""
        for problem in findings_of(document, models, profiles):
            at = field_place(node, problem.path)
            line, column = (at.line + 1, at.column + 1) if problem.path else (0, 0)
            placed.append(replace(problem, message=problem.message + where, line=line, column=column))
    return Checked(file=file, kinds=tuple(str(one.get("kind")) for one, _ in ours), found=tuple(placed))


HINTS = {
    "did not find expected": ": is it indented like its neighbours?",
    "mapping values are not allowed": ": is it indented like its neighbours, and is a text with `: ` in quotes?",
    "cannot start any token": ": indent with spaces, not with tabs; put a text that begins with @, ` or % in quotes",
}
"""Message of the YAML parser → its usual cause."""


def _no_yaml(error: yaml.MarkedYAMLError) -> Problem:
    said = " ".join(str(error.problem or error).split())
    hint = next((hint for words, hint in HINTS.items() if words in said), "")
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    return Problem(path="", message=f"is not YAML: {said}{hint}", line=line, column=column)


def wrong(manifest: Mapping[str, Any], profiles: Collection[Any] = ()) -> list[Problem]:
    """The API server's refusals; if there are none, the engine's."""
    return [problem for problem in findings_of(manifest, None, profiles) if not problem.note]


def findings_of(
    manifest: Mapping[str, Any], models: Path | None = None, profiles: Collection[Any] = ()
) -> list[Problem]:
    """The manifest's problems or, if it is valid, notes; with `models`, also preflight's findings. A deployment that
    names one of the `profiles` is checked with its values."""
    if faults := problems(manifest):
        return faults
    if is_a(PROFILE, manifest):
        return []
    if name := api.profile_of(manifest):
        return _with_profile(manifest, name, models, profiles)
    spec, written = _READ[manifest["kind"]](manifest), api.stored(manifest)["spec"]
    refused = [
        Problem(path=refusal.path, message=refusal.message) for refusal in refusals_of_spec.refused(spec, written)
    ]
    if refused:
        return refused
    notes = [*unchecked(spec, models is not None), *(() if isinstance(spec, RunSpec) else unnamed(written))]
    if models is None or isinstance(spec, RunSpec):
        return notes
    from paceline.cli.models import preflight  # its import takes longer than everything else here

    return [*preflight(spec, written, models), *notes]
