"""A person asks by annotation: each request of one deployment, one after another, and what came of it."""

from collections.abc import Iterator

import pytest
from tests.cluster.conftest import namespace_for
from tests.cluster.example import small
from tests.support.kubernetes import Manifest, Namespace, says
from tests.support.queries import POOL, jobs_of, measuring, name_of, pool_of, run_of, served

NAME = "coder"


@pytest.fixture(scope="module")
def here(hub: str) -> Iterator[Namespace]:
    with namespace_for("requests") as fresh:
        fresh.apply(small(NAME, hub))
        yield fresh


def ask(here: Namespace, verb: str, value: str) -> None:
    here.kubectl("annotate", "--overwrite", "specdep", NAME, f"{verb}.paceline.dev/{POOL}={value}")


def entry(here: Namespace) -> Manifest:
    return pool_of(here.get("specdep", NAME))


def kinds(here: Namespace) -> list[str]:
    return [change["reason"] for change in entry(here)["history"]]


def test_abort_ends_the_run_and_frees_its_accelerators(here: Namespace) -> None:
    run = here.wait("the run", run_of(here, NAME), 120)
    here.wait("a round", measuring(here, run, 0), 60)
    ask(here, "abort", "monday")
    ended = here.wait("the run to end", lambda: aborted(here, run), 30)
    assert "abort=monday" in next(c["message"] for c in ended["status"]["conditions"] if c["type"] == "Failed")
    here.wait("its rounds to go", lambda: not jobs_of(here, run), 30)
    assert (entry(here)["holds"][0]["reason"], entry(here)["internal"]["handled"]) == ("Aborted", {"abort": "monday"})


def test_promote_anyway_serves_what_nothing_has_shown(here: Namespace) -> None:
    ask(here, "promote-anyway", "@tuesday")
    here.wait("the candidate to be served", served(here, NAME, "wide"), 60)
    assert kinds(here) == ["PromotedAnyway", "Started"]
    assert "evidence" not in entry(here)["serving"]
    assert says(here.get("specdep", NAME), "Promoted", "True", "PromotedAnyway")


def test_rollback_serves_what_served_before_and_measures_nothing(here: Namespace) -> None:
    ask(here, "rollback", "@wednesday")
    here.wait("the baseline to be served", served(here, NAME, "baseline"), 60)
    assert kinds(here) == ["RolledBack", "PromotedAnyway", "Started"]
    assert entry(here)["holds"][0]["reason"] == "RolledBack"
    rounds = here.list("pods", "paceline.dev/component=round")
    assert all("deletionTimestamp" in pod["metadata"] for pod in rounds)  # of the run beside what was promoted anyway


def test_retry_releases_the_hold_and_measures(here: Namespace) -> None:
    ask(here, "retry", "thursday")
    here.wait("the winner to be served", served(here, NAME, "wide"), 120)
    latest = entry(here)["history"][0]
    assert latest["reason"] == "Promoted"
    assert float(latest["evidence"]["speedup"]) == pytest.approx(1.39, rel=0.1)
    assert "holds" not in entry(here)


def test_a_rollback_to_a_revision_by_name_and_promote_undoes_it(here: Namespace) -> None:
    baseline, wide = entry(here)["history"][-1]["revision"], entry(here)["serving"]["revision"]
    runs = {name_of(run) for run in here.list("bench")}
    ask(here, "rollback", f"{baseline}@friday")
    here.wait("the baseline to be served", served(here, NAME, "baseline"), 60)
    ask(here, "promote", f"{wide}@saturday")
    here.wait("the winner to be served", served(here, NAME, "wide"), 60)
    assert {name_of(run) for run in here.list("bench")} == runs


def test_what_cannot_be_had_is_refused_with_what_can(here: Namespace) -> None:
    ask(here, "rollback", "0123456789@sunday")
    refused = here.wait("an answer", lambda: here.get("specdep", NAME)["status"].get("refused"), 20)
    assert f"write {entry(here)['history'][-1]['revision']}@TOKEN (baseline" in refused[0]


def aborted(here: Namespace, run: Manifest) -> Manifest | None:
    found = here.get("bench", name_of(run))
    return found if says(found, "Failed", "True", "Aborted") else None
