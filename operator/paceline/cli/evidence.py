"""`paceline evidence export | verify`: a run's verdict as a statement that others can check (docs/evidence.md)."""

import argparse
import hashlib
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from paceline.api.round import rounds_of
from paceline.api.text import Dumper
from paceline.cli import options, report_source
from paceline.core.manifest import Manifest
from paceline.core.names import SIGNATURE
from paceline.core.text import count, error_text, printable
from paceline.evidence import signature
from paceline.kube import ApiError
from paceline.measure import record
from paceline.plan.run import statement
from paceline.render.common import API_VERSION

REFUSED = 15
"""Exit code of `verify` for evidence that is not what it says, or that no listed key has signed."""
_NOTES = """\
export writes the statement to be signed, as it is, by
  cosign attest-blob --key cosign.key --statement FILE --type https://paceline.dev/evidence/v1 --bundle BUNDLE
verify reads a statement, an envelope, or such a bundle, judges the rounds anew, and compares every field. It needs no
network and no cosign.
Exit of verify: 0 Promote, 10 Reject, 11 Inconclusive, 12 Error; 15 refused; 1 if the file or a key cannot be read.
"""


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("evidence", epilog=_NOTES, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True, metavar="export|verify")
    export = actions.add_parser("export", help="write a run's statement")
    export.add_argument("file", metavar="RUN", help="a BenchmarkRun in the cluster, a file of `paceline measure`, or -")
    export.add_argument("-o", "--output", default="-", metavar="FILE", help="the statement [stdout]")
    export.add_argument("--test-result", action="store_true", help="in short, by in-toto's predicate test-result/v0.1")
    options.add_kubectls(export)
    verify = actions.add_parser("verify", help="check a statement's signature, and judge its rounds anew")
    verify.add_argument("file", metavar="FILE", help="a statement, an envelope, or a bundle of cosign")
    verify.add_argument(
        "--key", type=Path, action="append", default=[], metavar="FILE",
        help="a public key that may have signed, such as cosign.pub; repeat for more",
    )  # fmt: skip
    verify.add_argument("-o", "--output", metavar="FILE", help="the run with its rounds, for kubectl apply")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    try:
        return _verify(args) if args.action == "verify" else _export(args)
    except (signature.SignatureError, statement.StatementError) as refused:
        print(f"{args.file}: refused: {printable(str(refused))}", file=sys.stderr)
        return REFUSED if args.action == "verify" else 1
    except (OSError, ApiError, *statement.ODD) as error:
        print(f"paceline evidence: {error_text(error)}", file=sys.stderr)
        return 1


def _export(args: argparse.Namespace) -> int:
    args.live = 0
    manifest = report_source.only_run(args.file, args)
    rounds = rounds_of(manifest)
    made = statement.statement(statement.portable(manifest, rounds), rounds)
    outcome = ((manifest.get("status") or {}).get("verdict") or {}).get("outcome")
    if outcome != (found_now := made["predicate"]["verdict"]["outcome"]):
        judged = f"its verdict is {outcome}, but its rounds say {found_now}" if outcome else "it has no verdict"
        raise statement.StatementError(f"{judged}: export the run that measured its rounds, once it has ended")
    statement.made_again(statement.to_text(made), datetime.now(UTC))
    text = statement.to_text(statement.as_test_result(made) if args.test_result else made)
    if args.output == "-":
        sys.stdout.write(text)
    else:
        Path(args.output).write_text(text, encoding="utf-8")
    return 0


def _verify(args: argparse.Namespace) -> int:
    with Path(args.file).open("rb") as file:
        sealed = signature.unsealed(file.read(signature.LARGEST_ENVELOPE + 1))
    keys = {str(file): file.read_text() for file in args.key}
    signed = _signed(sealed, keys)
    made = statement.made_again(sealed.text, datetime.now(UTC))
    print(f"{args.file}: {signed}")
    predicate = made["predicate"]
    if predicate["emulated"]:
        print("EMULATED: an emulator served, and no engine has these speeds")
    for subject in made["subject"]:
        print(f"{subject['name']} at {' '.join(subject['digest'].values())}")
    verdict, rounds = predicate["verdict"], predicate["rounds"]
    ended = max(one.get("completionTime", "") for one in rounds)
    print(f"question {predicate['question']}, {count(len(rounds), 'round')} until {ended}")
    means = [one for one in verdict["intervals"] if one["workload"].startswith("mean")]
    listed = [f"{one['arm']} {one['ratio']}x ({one['lower']} to {one['upper']})" for one in means]
    print("; ".join([f"{verdict['outcome']}, as the rounds say", *listed]))
    if args.output:
        Path(args.output).write_text(
            yaml.dump_all(_to_apply(sealed, predicate), Dumper=Dumper, sort_keys=False), "utf-8"
        )
    return options.EXIT[verdict["outcome"]]


def _signed(sealed: signature.Sealed, keys: dict[str, str]) -> str:
    if keys:
        name = signature.signer(sealed, keys)
        return f"signed by {name} (SHA-256 {signature.key_id(keys[name])})"
    return "its signature is not checked, as --key names none" if sealed.signature else "UNSIGNED: anybody can write it"


def _to_apply(sealed: signature.Sealed, predicate: Manifest) -> list[Any]:
    """The run and its rounds as they come into another cluster, with the signature."""
    name = f"evidence-{hashlib.sha256(sealed.text.encode()).hexdigest()[:10]}"
    signed = {"annotations": {SIGNATURE: sealed.signature}} if sealed.signature else {}
    run = {"apiVersion": API_VERSION, "kind": "BenchmarkRun", "metadata": {"name": name, **signed}}
    return list(record.as_documents({**run, "spec": predicate["spec"], "rounds": predicate["rounds"]}))
