"""Files that people give to commands, whatever is in them: one sentence, and no traceback."""

import contextlib
import io
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support import signing
from tests.support.gate_cases import case
from tests.support.reports import evil
from tests.support.runs import latency
from tests.unit.foreign.values import ANY, FEW, mangled, refused, said, spoiled, text_of

from paceline import cli
from paceline.api.text import of_yaml
from paceline.cli import gate_case, report_source
from paceline.cli.validate import of_text
from paceline.evidence.signature import LARGEST_ENVELOPE, SignatureError, signer, unsealed
from paceline.measure import record
from paceline.plan.run.statement import StatementError, made_again

FILES = settings(FEW, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
RUN, ROUND, *_ = record.as_documents(latency())
DEPLOYMENTS = Path(__file__).parents[1] / "migration" / "deployments"
SPECULATIVE = {"method": "eagle3", "model": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", "num_speculative_tokens": 3}
CASE = case({"baseline": {"code": 100.0, "chat": 90.0}, "wide": {"code": 120.0, "chat": 110.0}}, rounds=2)


@given(text=(spoiled(CASE) | ANY).map(said) | text_of(said(CASE).encode()))
@FEW
def test_a_case_is_judged_or_refused(text: str) -> None:
    with refused(ValueError):
        gate_case.read_case(text.encode(errors="surrogatepass"))


@given(run=spoiled(RUN) | spoiled(evil()), ending=st.sampled_from(["md", "json"]))
@settings(FILES, max_examples=40)
def test_a_run_of_anybodys_is_a_page_or_refused(
    tmp_path: Path, run: object, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.json"
    file.write_text(said(run), encoding="utf-8")
    for command in (["report", str(file), "-o", str(tmp_path / f"page.{ending}")], ["card", str(file)]):
        code = cli.main(command)
        complaint = capsys.readouterr().err
        assert (code, bool(complaint)) in ((0, False), (1, True))
        assert len(complaint.splitlines()) <= 1


@given(run=spoiled(RUN) | spoiled(evil()))
@settings(FILES, max_examples=40)
def test_a_run_of_anybodys_is_exported_or_refused(
    tmp_path: Path, run: object, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.json"
    file.write_text(said(run), encoding="utf-8")
    code = cli.main(["evidence", "export", str(file), "-o", str(tmp_path / "statement.json")])
    complaint = capsys.readouterr().err
    assert (code, len(complaint.splitlines())) in ((0, 0), (1, 1))


STATED = signing.stated()
BUNDLE = signing.bundle(signing.text(), signing.key())
NOW = datetime(2026, 11, 29, tzinfo=UTC)


@given(text=(spoiled(STATED) | ANY).map(said) | text_of(signing.text().encode()))
@settings(FEW, max_examples=60)
def test_a_statement_is_made_again_or_refused(text: str) -> None:
    with refused(StatementError, longest=4_000):
        made_again(text, NOW)


@given(data=(spoiled(BUNDLE) | ANY).map(said).map(str.encode) | mangled(said(BUNDLE).encode()) | st.binary())
@FEW
def test_an_envelope_is_opened_or_refused(data: bytes) -> None:
    with refused(SignatureError):
        sealed = unsealed(data)
        signer(sealed, {"desk": signing.pem(signing.key())})


def test_a_statement_that_is_too_large_or_too_deep_is_refused() -> None:
    with refused(SignatureError):
        unsealed(b" " * (LARGEST_ENVELOPE + 1))
    deep: dict[str, Any] = {}
    for _ in range(900):
        deep = {"a": deep}
    for text in ("[" * 100_000, said(STATED | {"predicate": STATED["predicate"] | {"spec": deep}})):
        with pytest.raises(StatementError):
            made_again(text, NOW)


LIST = {"kind": "List", "items": [RUN, ROUND]}


@given(text=(spoiled(RUN) | spoiled(LIST)).map(said) | text_of(yaml.safe_dump(RUN).encode()))
@settings(FILES, max_examples=10)
def test_a_file_has_runs_or_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(text, encoding="utf-8")
    with refused(ValueError):
        assert all(isinstance(run, dict) for run in report_source.of_file(str(file)).runs)
    with refused(record.RecordError):
        record.load_run(file)


@given(text=(spoiled(SPECULATIVE) | ANY).map(said))
@FILES
def test_a_speculative_config_is_a_candidate_or_a_question(tmp_path: Path, text: str) -> None:
    """Of vLLM, in the arguments of a Deployment."""
    manifest = yaml.safe_load((DEPLOYMENTS / "vllm-stack-eagle3.yaml").read_text())
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    container["args"] = ["--speculative-config", text]
    container["command"] = ["vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct"]
    file = tmp_path / "deployment.yaml"
    file.write_text(yaml.safe_dump(manifest), encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as told:
        code = cli.main(["import", str(file), "--engine-version", "0.33.0", "--product", "NVIDIA-H100", "--gpus", "1"])
    assert code in (0, 1)
    assert code == 0 or told.getvalue()


@given(text=(spoiled(RUN) | ANY).map(said) | text_of(yaml.safe_dump(RUN).encode()))
@settings(FEW, max_examples=30)
def test_a_manifest_has_problems_or_none(text: str) -> None:
    assert all(str(problem) for problem in of_text(text))


DEEP = ("[" * 5_000, '{"kind": ' * 5_000, "- " * 5_000, '{"kind": "BenchmarkRun", "spec": ' + "[" * 5_000)


@pytest.mark.parametrize("text", DEEP, ids=range(len(DEEP)))
def test_what_is_nested_without_end_is_told(tmp_path: Path, text: str) -> None:
    """YAML's parser, which is written in C, may end the whole process at it. From Python 3.13 on the one of JSON reads
    to the end of it."""
    file = tmp_path / "run.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"(?s)run\.yaml: .*(nest|recursion|Expecting value)"):
        report_source.of_file(str(file))
    with refused(record.RecordError):
        record.load_run(file)
    assert any("nest" in str(problem) for problem in of_text(text))


def laughs(levels: int, each: int = 10, *, merged: bool = False) -> str:
    """A few lines whose aliases stand for EACH ** LEVELS values."""
    lines = ["a0: &a0 {x0: lol}"]
    for level in range(1, levels + 1):
        aliases = ", ".join([f"*a{level - 1}"] * each)
        lines.append(f"a{level}: &a{level} " + (f"{{<<: [{aliases}], x{level}: 1}}" if merged else f"[{aliases}]"))
    return "\n".join([*lines, "kind: BenchmarkRun", "apiVersion: paceline.dev/v1alpha1", f"spec: *a{levels}"])


BOMBS = {
    "a billion laughs": (laughs(9), "its aliases stand for more than 100000 values"),
    "merged maps": (laughs(9, merged=True), "its aliases stand for more than 100000 values"),
    "a map within itself": ("kind: BenchmarkRun\nspec: &a {b: *a}\n", "*a contains itself"),
    "a list within a list within itself": ("- &a [[*a]]\n", "*a contains itself"),
}


@pytest.mark.parametrize(("text", "why"), BOMBS.values(), ids=BOMBS)
def test_aliases_that_swell_are_refused_before_anything_is_built(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(text)
    assert [str(problem) for problem in of_text(text) if why in str(problem)]
    with pytest.raises(ValueError, match=re.escape(why)):
        report_source.of_file(str(file))
    with pytest.raises(record.RecordError, match=re.escape(why)):
        record.load_run(file)
    for command in ("validate", "render", "plan", "measure"):
        told = io.StringIO()
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
            assert cli.main([command, str(file)]) == 1, command
        assert why in told.getvalue(), command


def test_the_aliases_that_people_write_are_read() -> None:
    """Arguments that two documents share, and a map that is merged."""
    shared = "&c {name: a, numSteps: 3}"
    text = f"common: {shared}\npools: [{{candidates: [*c, {{<<: *c, name: b}}]}}]\n"
    (found,) = of_yaml(text)
    assert found["pools"][0]["candidates"] == [{"name": "a", "numSteps": 3}, {"name": "b", "numSteps": 3}]
    assert len(of_yaml(laughs(4))) == 1


def test_a_map_of_100_000_keys_is_read_in_linear_time() -> None:
    began = time.process_time()
    assert len(of_yaml("\n".join(f"k{n}: 1" for n in range(100_000)))[0]) == 100_000
    assert time.process_time() - began < 30
