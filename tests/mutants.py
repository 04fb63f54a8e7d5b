"""`make mutants`: each rule of the list is broken in a copy of the operator, and its tests must fail.

Written before tests are deleted: whatever goes, these mutants die. One whose text has moved is written anew.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Mutant:
    """In `file` of operator/paceline, `before` stands once; with `after` in its place one of `tests` fails."""

    file: str
    before: str
    after: str
    tests: str


MUTANTS = (
    # gate: bounds, thresholds, looks, losses
    Mutant("gate/interval.py", "sd / math.sqrt(n)", "sd / n", "tests/gate/test_reference.py"),
    Mutant("gate/interval.py", "(n - 1)), floor)", "(n - 1)), 0.0)", "tests/gate/test_reference.py"),
    Mutant("gate/findings.py", "math.log1p(gate.min_improvement)", "0.0", "tests/gate/test_stories.py"),
    Mutant("gate/findings.py", "math.log1p(-gate.max_regression)", "-1.0", "tests/gate/test_stories.py"),
    Mutant("gate/losses.py", "len(counted) > TOLERATED and", "len(counted) > TOLERATED + 1 and",
           "tests/gate/test_losses.py"),
    Mutant("gate/server_failures.py", "return baseline in DEATHS or", "return bool(baseline) or",
           "tests/gate/test_losses.py"),
    # evidence: what a point must have, and that a log is whole
    Mutant("evidence/judge.py", "cpu <= MOST_CPU and lag <= longest", "True", "tests/unit/evidence/test_judge.py"),
    Mutant("evidence/judge.py", "point.output_tokens / base, base / point.output_tokens) > 1 + most",
           "point.output_tokens / base, 1.0) > 1 + most", "tests/unit/evidence/test_judge.py"),
    Mutant("evidence/judge.py", "0 < point.asked == point.completed", "True", "tests/unit/evidence/test_judge.py"),
    Mutant("evidence/result_log.py", "and digest == _digest(text)", "and digest", "tests/unit/evidence/test_result.py"),
    # a round's pod: what is read of a stream, and of a server's cache
    Mutant("pods/round/answers.py", 'FAILED = ("abort", "error")', "FAILED = ()", "tests/unit/round/test_client.py"),
    Mutant("pods/round/answers.py", "self.error or (\"\" if arrivals else NO_TOKENS) or broke_off", "self.error",
           "tests/unit/round/test_client.py"),
    Mutant("pods/round/report.py", "for one in answered)[-enough]", "for one in answered)[-1]",
           "tests/unit/round/test_report.py"),
    Mutant("pods/round/contamination.py", "if work.cached_tokens <= most", "if most",
           "tests/unit/round/test_contamination.py"),
    Mutant("pods/round/choose.py", "round * (part or requests), requests)", "0, requests)",
           "tests/unit/round/test_choose.py"),
    # what a pool serves, and holds
    Mutant("plan/deployment/choose.py", "return_to_last_served, winner_of_verdict,", "winner_of_verdict,",
           "tests/plan/test_transitions.py"),
    Mutant("plan/deployment/choose.py", "choice is None or held(pool, choice.revision)", "choice is None",
           "tests/plan/test_rollback.py"),
    Mutant("plan/deployment/choose.py", "if not pool.frozen or target is None", "if True",
           "tests/plan/test_one_path.py"),
    Mutant("plan/deployment/holds.py", "        return one.fingerprint != pool.fingerprint\n", "        return False\n",
           "tests/plan/test_rollback.py tests/plan/test_abort.py"),
    Mutant("plan/deployment/holds.py", "FIRST * 2 **", "FIRST * 1 **", "tests/plan/test_beside_a_hold.py"),
    Mutant("plan/deployment/requests.py", 'pool.last_asked(rolling.fingerprint if rolling else "")',
           "pool.fingerprint", "tests/plan/test_one_path.py"),
    # API, models, cluster, search
    Mutant("api/profiled.py", "if lock in locked and value != of_profile.get(field)", "if False",
           "tests/unit/api/test_profile.py tests/plan/test_profiles.py"),
    Mutant("fetching/result.py", 'if value["version"] != _VERSION', "if False", "tests/unit/fetching/test_result.py"),
    Mutant("pods/fetch/verify.py", "if len(like) == hashlib.sha256().digest_size * 2", "if False",
           "tests/unit/fetch/test_fetch.py"),
    Mutant("search/steps.py", "if len(kept) + len(cells) > points", "if False", "tests/unit/search/test_steps.py"),
)  # fmt: skip


def survivors() -> Iterator[Mutant]:
    for mutant in MUTANTS:
        dies = killed(mutant)
        print(f"{'dies' if dies else 'LIVES':5} {mutant.file}: {mutant.after!r}", flush=True)
        if not dies:
            yield mutant


def killed(mutant: Mutant) -> bool:
    with TemporaryDirectory() as folder:
        operator = Path(folder) / "operator"
        shutil.copytree(ROOT / "operator", operator, ignore=shutil.ignore_patterns("__pycache__"))
        file = operator / "paceline" / mutant.file
        text = file.read_text()
        assert text.count(mutant.before) == 1, (
            f"{mutant.file}: {mutant.before!r} stands there {text.count(mutant.before)} times"
        )
        file.write_text(text.replace(mutant.before, mutant.after))
        argv = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *mutant.tests.split()]
        ended = subprocess.run(
            argv, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(operator)}, capture_output=True, check=False
        )
        assert ended.returncode in (0, 1), ended.stdout[-2000:].decode()
        return ended.returncode == 1


if __name__ == "__main__":
    sys.exit(bool(list(survivors())))
