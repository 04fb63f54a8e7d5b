"""`paceline evidence`: what is exported, what a stranger verifies without a network, and what is refused."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import signing
from tests.support.imported import SLOWER, brought, file, with_status
from tests.support.messages import Says
from tests.support.runs import latency
from tests.unit.cli.states import both_promoted

from paceline import cli
from paceline.api.round import rounds_of
from paceline.cli.evidence import REFUSED
from paceline.core.manifest import Manifest
from paceline.core.names import SIGNATURE
from paceline.measure import record
from paceline.plan.run.statement import _subjects, to_text

SIGNED = Path(__file__).parent / "signed"
"""The statement about a fixed run, and the key's public half, as `cosign attest-blob` 3.1.3 has signed it: a statement
of an older release must still be verified."""
Said = tuple[int, str, str]


@pytest.fixture
def evidence(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    def call(*words: object) -> Said:
        code = cli.main(["evidence", *map(str, words)])
        return code, *capsys.readouterr()

    return call


def write(file: Path, *objects: Any) -> Path:
    file.write_text(yaml.safe_dump_all(json.loads(json.dumps(objects))), encoding="utf-8")
    return file


def desk(tmp_path: Path) -> Path:
    """A file as `paceline measure` has written it."""
    return write(tmp_path / "run.yaml", *record.as_documents(with_status()))


def bundle(tmp_path: Path, key: signing.Key, text: str) -> Path:
    """As `cosign attest-blob --key` writes it."""
    (tmp_path / "signed.json").write_bytes(signing.as_bytes(signing.bundle(text, key)))
    return tmp_path / "signed.json"


def public(tmp_path: Path, key: signing.Key, name: str = "desk.pub") -> Path:
    (tmp_path / name).write_text(signing.pem(key))
    return tmp_path / name


def test_a_measured_run_is_exported_signed_and_verified(
    tmp_path: Path, evidence: Callable[..., Said], says: Says
) -> None:
    run, statement, key = desk(tmp_path), tmp_path / "statement.json", signing.key()
    assert evidence("export", run, "-o", statement) == (0, "", "")
    told = json.loads(statement.read_text())
    assert told["_type"] == "https://in-toto.io/Statement/v1"
    assert [subject["name"] for subject in told["subject"]] == [
        "hf://Qwen/Qwen3-Coder-Next",
        "hf://thoughtworks/Qwen3-Coder-Next-Eagle3",
    ]
    assert told["predicate"]["verdict"]["outcome"] == "Promote"
    code, out, err = evidence("verify", statement)
    assert (code, err) == (0, "")
    assert "UNSIGNED" in out
    signed = bundle(tmp_path, key, statement.read_text())
    code, out, _ = evidence("verify", signed, "--key", public(tmp_path, key))
    assert (code, out.splitlines()[0].startswith(f"{signed}: signed by {tmp_path / 'desk.pub'}")) == (0, True)
    assert out.splitlines()[-1].startswith("Promote, as the rounds say; wide 1.3")
    code, out, _ = evidence("verify", signed)
    says(out.splitlines()[0])


def test_a_head_of_a_bucket_is_named_by_its_objects() -> None:
    head, target = "gs://heads/qwen/eagle3", {"source": "hf://Qwen/Qwen3-8B", "commit": "1" * 40}
    spec = {"target": target, "arms": [{}, {"draft": {"source": head, "commit": "2" * 40}}]}
    assert list(_subjects(spec)) == [
        {"name": "hf://Qwen/Qwen3-8B", "digest": {"gitCommit": "1" * 40}},
        {"name": head, "digest": {"paceline.dev/objects": "2" * 40}},
    ]


def test_what_cosign_has_signed_is_verified_without_a_network() -> None:
    """A process in which any use of a socket would be an error."""
    program = (
        "import sys\n"
        "def no(event, args):\n    assert not event.startswith(('socket.', 'subprocess.')), event\n"
        "sys.addaudithook(no)\n"
        "from paceline import cli\n"
        "sys.exit(cli.main(sys.argv[1:]))"
    )
    words = ["evidence", "verify", SIGNED / "bundle.json", "--key", SIGNED / "cosign.pub"]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "signed by" in done.stdout


def test_a_rejection_is_evidence_too(tmp_path: Path, evidence: Callable[..., Said]) -> None:
    """Its exit code is the gate's, and in-toto's word for it FAILED."""
    slower = file(truth=SLOWER) | {"status": {"verdict": {"outcome": "Reject"}}}
    run, statement = write(tmp_path / "run.yaml", *record.as_documents(slower)), tmp_path / "statement.json"
    assert evidence("export", run, "-o", statement)[0] == 0
    assert evidence("verify", statement)[0] == 10
    code, out, _ = evidence("export", run, "--test-result")
    short = json.loads(out)["predicate"]
    assert (code, short["result"], short["failedTests"], short["passedTests"]) == (0, "FAILED", ["wide"], [])


def test_an_empty_gate_is_a_gate(tmp_path: Path, evidence: Callable[..., Said]) -> None:
    run = file()
    asked = {**run["spec"], "gate": {}}
    (tmp_path / "statement.json").write_text(signing.text(brought(asked, rounds_of(run))))
    code, _, err = evidence("verify", tmp_path / "statement.json")
    assert (code, err) == (12, ""), "its first look is after four rounds, and there are three"


def test_an_emulators_evidence_says_so(tmp_path: Path, evidence: Callable[..., Said]) -> None:
    (tmp_path / "statement.json").write_text(signing.text(file(change=lambda round: round)))
    code, out, _ = evidence("verify", tmp_path / "statement.json")
    assert (code, out.splitlines()[1].startswith("EMULATED: ")) == (0, True)


def test_a_run_of_a_cluster_can_be_taken_to_another(tmp_path: Path, evidence: Callable[..., Said]) -> None:
    """It gets `measured`, by which a cluster knows that it measures nothing."""
    cluster, key = both_promoted().cluster, signing.key()
    runs = [one for one in cluster.of("BenchmarkRun") if one["status"]["verdict"].get("outcome")]
    run = write(tmp_path / "run.yaml", runs[0], *cluster.of("BenchmarkRound"))
    code, text, _ = evidence("export", run)
    assert code == 0
    signed, there = bundle(tmp_path, key, text), tmp_path / "there.yaml"
    assert evidence("verify", signed, "--key", public(tmp_path, key), "-o", there)[0] == 0
    taken, *rounds = yaml.safe_load_all(there.read_text())
    assert taken["spec"]["measured"]["rounds"] == len(rounds)
    assert taken["metadata"]["annotations"][SIGNATURE]
    assert cli.main(["validate", str(there)]) == 0


@pytest.mark.parametrize(
    ("spoil", "about"),
    [
        (lambda text: text.replace('"outcome":"Promote"', '"outcome":"Reject"'), "predicate.verdict.outcome"),
        (lambda text: text.replace('"confidence":"95%"', '"confidence":"90%"'), "predicate.question"),
        (lambda text: text.replace("}", " }", 1), "its text was written anew"),
        (lambda text: text.replace("evidence/v1", "evidence/v2"), "predicateType"),
        (lambda _: "{}", "it is no statement about a run"),
    ],
    ids=["another verdict", "another gate", "written anew", "another predicate", "nothing"],
)
def test_what_its_rounds_contradict_is_refused_though_it_is_signed(
    tmp_path: Path, evidence: Callable[..., Said], spoil: Callable[[str], str], about: str, says: Says
) -> None:
    key = signing.key()
    signed = bundle(tmp_path, key, spoil(signing.text()))
    code, out, err = evidence("verify", signed, "--key", public(tmp_path, key))
    assert (code, out) == (REFUSED, "")
    assert about in err
    says(err)


@pytest.mark.timeout(20)
def test_a_round_of_any_number_of_servers_is_refused_at_once(
    tmp_path: Path, evidence: Callable[..., Said], says: Says
) -> None:
    """Judging looks for each point's server."""
    stated = signing.stated()
    (first, *_), servers = stated["predicate"]["rounds"], 300_000
    first["points"], first["replicates"] = first["points"][:1] * 2, [{"arm": "wide"}] * servers
    (tmp_path / "long.json").write_text(to_text(stated))
    code, out, err = evidence("verify", tmp_path / "long.json")
    assert (code, out) == (REFUSED, "")
    says(err)


def test_only_a_listed_key_counts(tmp_path: Path, evidence: Callable[..., Said], says: Says) -> None:
    mine, theirs = signing.key(1), signing.key(2)
    listed = public(tmp_path, theirs)
    code, _, err = evidence("verify", bundle(tmp_path, mine, signing.text()), "--key", listed)
    assert code == REFUSED
    says(err)
    both = ("--key", listed, "--key", public(tmp_path, mine, "mine.pub"))
    assert evidence("verify", tmp_path / "signed.json", *both)[0] == 0
    (tmp_path / "bare.json").write_text(signing.text())
    code, _, err = evidence("verify", tmp_path / "bare.json", *both)
    assert code == REFUSED
    says(err)


def test_a_signature_over_another_type_of_payload_is_none(tmp_path: Path, evidence: Callable[..., Said]) -> None:
    key = signing.key()
    other = signing.bundle(signing.text(), key, kind="text/plain")
    (tmp_path / "signed.json").write_bytes(signing.as_bytes(other))
    assert evidence("verify", tmp_path / "signed.json", "--key", public(tmp_path, key))[0] == REFUSED
    other["dsseEnvelope"]["payloadType"] = signing.TYPE
    (tmp_path / "signed.json").write_bytes(signing.as_bytes(other))
    assert evidence("verify", tmp_path / "signed.json", "--key", public(tmp_path, key))[0] == REFUSED


@pytest.mark.parametrize("words", ["no key", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
def test_a_key_that_is_none_is_said(tmp_path: Path, evidence: Callable[..., Said], words: str, says: Says) -> None:
    (tmp_path / "wrong.pub").write_text(words)
    code, _, err = evidence("verify", SIGNED / "bundle.json", "--key", tmp_path / "wrong.pub")
    assert code == 1
    says(err)


def without_verdict(run: Manifest) -> Manifest:
    return {key: value for key, value in run.items() if key != "status"}


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(without_verdict(with_status()), id="under way"),
        pytest.param(with_status() | {"status": {"verdict": {"outcome": "Reject"}}}, id="another verdict"),
        pytest.param(latency(), id="rounds without a fingerprint"),
    ],
)
def test_only_a_run_that_has_ended_is_exported(
    tmp_path: Path, evidence: Callable[..., Said], run: Manifest, says: Says
) -> None:
    code, out, err = evidence("export", write(tmp_path / "run.yaml", *record.as_documents(run)))
    assert (code, out) == (1, "")
    says(err)
