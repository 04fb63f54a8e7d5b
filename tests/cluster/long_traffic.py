"""examples/own-traffic.yaml in the cluster: a chat log of three turns, parquet of the hub and of a claim, an adapter,
answers that must be JSON, arrivals replayed. Every point is valid, and evidence says what was sent."""

import hashlib
import json
from collections.abc import Iterator

import pytest
import yaml
from tests.cluster.conftest import namespace_for
from tests.cluster.example import emulated
from tests.cluster.test_examples import EXAMPLES, H200, IMAGE, cache, check, decided
from tests.cluster.volumes import filled
from tests.support.kubernetes import Manifest, Namespace
from tests.support.overlay import merged
from tests.support.queries import lines_of

from paceline_emulator.hub.prompts import files

SPEC, CONFIG_MAP = yaml.safe_load_all((EXAMPLES / "own-traffic.yaml").read_text())
CLAIM, FILE = "team-data", "sql.parquet"
TO_PARQUET = f"""
import duckdb, hashlib, json, os
given = [json.loads(line)["messages"] for line in os.environ["LINES"].splitlines()]
form = '[[{{"role": "VARCHAR", "content": "VARCHAR"}}]]'
table = "SELECT unnest(from_json(?, '" + form + "')) AS messages"
duckdb.execute(f"COPY ({{table}}) TO '/models/{FILE}' (FORMAT parquet)", [json.dumps(given)])
print(hashlib.sha256(open("/models/{FILE}", "rb").read()).hexdigest())
"""
"""The adapter's prompts as a table on a claim."""
WORKLOADS = {"chats@1", "table@1", "sql@1", "bugs@1", "replay@0.6/s"}
VERDICT_SECONDS = 280


def smaller(hub: str) -> Manifest:
    """Its datasets as they are, but for the adapter's, which is on a claim; two rounds, and the emulator."""
    benchmark = SPEC["spec"]["benchmark"]
    datasets = [
        {**one, "source": f"pvc://{CLAIM}/{FILE}"} if one["name"] == "sql" else one for one in benchmark["datasets"]
    ]
    overlay = {
        "engine": {"image": IMAGE, "env": emulated()},
        "cache": cache(SPEC["spec"]["cache"], hub),
        "benchmark": {"datasets": datasets},
        "gate": {"confidence": "80%", "decideAfterRounds": [2]},
        **H200,
    }
    return {**SPEC, "spec": merged(SPEC["spec"], overlay)}


@pytest.fixture(scope="module")
def sql_digest() -> list[str]:
    """Of the table on the claim, once it is there."""
    return []


@pytest.fixture(scope="module")
def here(hub: str, sql_digest: list[str]) -> Iterator[Namespace]:
    """With the verdict."""
    with namespace_for("own-traffic") as fresh:
        sql_digest.append(filled(fresh, CLAIM, TO_PARQUET, {"LINES": CONFIG_MAP["data"]["sql.jsonl"]}).strip())
        manifest = smaller(hub)
        fresh.apply(CONFIG_MAP)
        fresh.apply(manifest)
        pool = fresh.wait("its verdict to be served", decided(fresh, manifest), VERDICT_SECONDS)
        check(fresh, manifest, pool, "sql=/models/adapters/sql")
        yield fresh


@pytest.fixture(scope="module")
def run(here: Namespace) -> Manifest:
    (found,) = here.list("bench")
    return found


@pytest.fixture(scope="module")
def lines(here: Namespace, run: Manifest) -> list[Manifest]:
    return lines_of(here, run["rounds"][-1])


def points(run: Manifest, name: str) -> list[Manifest]:
    found = [point for entry in run["rounds"] for point in entry["points"]]
    return [point for point in found if point["workload"].startswith(f"{name}@")]


@pytest.mark.timeout(400)
def test_every_kind_of_traffic_is_measured_on_both_arms(run: Manifest) -> None:
    for entry in run["rounds"]:
        assert {(point["arm"], point["workload"]) for point in entry["points"] if point["valid"]} == {
            (arm, workload) for arm in ("baseline", "wide") for workload in WORKLOADS
        }


def test_each_file_is_named_by_its_digest_and_its_prompts_are_counted(run: Manifest, sql_digest: list[str]) -> None:
    data = {name: text.encode() for name, text in CONFIG_MAP["data"].items()}
    contents = {
        "chats": data["chats.jsonl"],
        "replay": data["chats.jsonl"],
        "bugs": data["bugs.jsonl"],
        "table": files()["data/chat.parquet"],
    }
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    digests["sql"] = sql_digest[0]
    for entry in run["rounds"]:
        assert entry["datasets"] == {name: digest[:12] for name, digest in digests.items()}
        assert entry["prompts"] == {"chats": 12, "replay": 12, "bugs": 8, "table": 12, "sql": 8}


def test_the_whole_history_is_sent(run: Manifest) -> None:
    """By the server's count: four characters a token, and twelve tokens of a template."""
    chats = [json.loads(line)["messages"] for line in CONFIG_MAP["data"]["chats.jsonl"].splitlines()]
    assert {tuple(message["role"] for message in chat) for chat in chats} == {
        ("system", "user", "assistant", "user", "assistant", "user")
    }
    lengths = [12 + sum(len(message["content"]) for message in chat) // 4 for chat in chats]
    for entry in run["rounds"]:
        (inputs,) = [one for one in entry["inputs"] if one["workload"] == "chats@1"]
        assert min(lengths) <= float(inputs["mean"]) <= max(lengths)


def test_answers_under_a_schema_are_checked(run: Manifest, lines: list[Manifest]) -> None:
    assert {point["malformed"] for point in points(run, "bugs")} == {0}
    assert {point.get("malformed") for point in points(run, "chats")} == {None}
    answers = [text for line in lines if line.get("workload") == "bugs@1" and "report" in line
               for text in line["report"]["generated_texts"]]  # fmt: skip
    assert len(answers) == 2 * 6
    assert all(json.loads(answer).keys() == {"file", "line", "kind"} for answer in answers)


def test_the_log_is_replayed_at_its_rate(run: Manifest) -> None:
    for point in points(run, "replay"):
        assert point["completed"] == 12
        assert float(point["offeredRate"]) == pytest.approx(0.6, rel=0.1)
        assert point["goodRequests"] <= 12
        assert float(point["requestSpeed"]) > 0


def test_every_server_had_the_adapter(lines: list[Manifest]) -> None:
    """It refuses a request that names another one (tests/unit/round/test_adapters.py)."""
    loaded = {line["arm"]: line["resolved"]["lora_paths"] for line in lines if "resolved" in line}
    assert loaded.keys() == {"baseline", "wide"}
    for adapters in loaded.values():
        assert [(one["lora_name"], one["lora_path"]) for one in adapters] == [("sql", "/models/adapters/sql")]
