"""A server's keys in a round: it is started with them, asked with them, and they are written down nowhere."""

import dataclasses
import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.containers import arms_of, container
from tests.support.example import RUN, SETTINGS, run
from tests.support.rounds import arm_command
from tests.unit.round.pod import CODE_1, Arms, Start, told
from tests.unit.round.test_round import emulated

from paceline.core import SecretKey
from paceline.engines.keys import ADMIN_KEY, API_KEY, HIDE
from paceline.evidence import Replicate, RoundResult
from paceline.pods.round.keys import Keys, read_keys
from paceline.render import round_job
from paceline.render.round_job import round_plan
from paceline.render.where import ANYWHERE

KEY, ADMIN = "sk-of-the-server", "sk-of-the-administrator"
ARGV = ("--api-key", f"$({API_KEY})", "--admin-api-key", f"$({ADMIN_KEY})")


@pytest.fixture
def pair(models: Path, port: int) -> Arms:
    """The baseline and a candidate without a head, with keys of their own."""
    ngram = ("--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "8")
    arms = (emulated(models, port, "baseline"), emulated(models, port, "ngram", *ngram))
    return tuple(dataclasses.replace(arm, argv=(*arm.argv, *ARGV)) for arm in arms)


def test_a_server_with_keys_is_measured(start: Start, pair: Arms, models: Path) -> None:
    outcome = start(pair, CODE_1, **{API_KEY: KEY, ADMIN_KEY: ADMIN}).finish()
    assert (outcome.client, outcome.wrapper) == (0, 0), outcome.log
    assert {key: one.why for key, one in outcome.judged.items() if not one.valid} == {}

    of_the_server = (
        models / "server.log",
        *(models / "ctl" / "out").glob("*/log"),
    )  # SGLang prints its arguments, and we cannot help it
    written = [path for path in models.rglob("*") if path.is_file() and path not in of_the_server]
    assert {"start", "client.log", "2-0.jsonl.gz"} <= {path.name for path in written}
    for path in written:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        assert KEY.encode() not in content, path
        assert ADMIN.encode() not in content, path


@pytest.mark.parametrize("key", ["plain", "with space", "quotes ' and \"", "$(date) `date` $HOME \\", "-dash"])
def test_the_key_arrives_as_the_kubelet_would_fill_it_in(tmp_path: Path, key: str) -> None:
    echo = (sys.executable, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))")
    words = ("--api-key", f"$({API_KEY})", "$(HOME)", f"x$({API_KEY})", "--served-model-name", f"$({API_KEY})")
    told(tmp_path).start((*echo, *words))
    ran = subprocess.run(
        ["dash", str(tmp_path / "in" / "arm" / "start")], env={API_KEY: key}, capture_output=True, text=True, check=True
    )
    # Behind its flag alone: a model of that name would tell the key to whoever asks for the models.
    assert json.loads(ran.stdout) == ["--api-key", key, *words[2:]]


def test_what_a_server_prints_of_its_arguments_has_no_key(tmp_path: Path) -> None:
    room = told(tmp_path, read_keys({API_KEY: KEY, ADMIN_KEY: ADMIN}))
    (tmp_path / "out" / "arm" / "log").write_text(
        f"error: server_args=ServerArgs(api_key='{KEY}', admin_api_key='{ADMIN}')\n"
    )
    assert room.last_words() == "error: server_args=ServerArgs(api_key='***', admin_api_key='***')"


def test_an_administrators_key_is_the_one_that_empties_a_cache() -> None:
    """SGLang takes its API key for that only if it has no other."""
    assert Keys(api=KEY).administration == KEY
    assert Keys(api=KEY, admin=ADMIN).administration == ADMIN
    assert KEY not in repr(Keys(api=KEY))


def test_the_client_and_every_arm_of_a_round_read_the_secret() -> None:
    """What is rendered names it; the plan that the client is given holds the words that the shell fills in."""
    asked = run()
    keys = {"api_key": SecretKey(name="keys", key="api"), "admin_key": SecretKey(name="keys", key="admin")}
    locked = dataclasses.replace(
        asked, server=dataclasses.replace(asked.server, engine=dataclasses.replace(asked.server.engine, **keys))
    )
    plan = round_plan(RUN, locked, locked.arms, 0, 0)
    job = round_job(RUN, locked, plan, ANYWHERE, SETTINGS)
    pod = job["spec"]["template"]
    for reader in (container(pod, "client"), *arms_of(pod)):
        assert {one["name"]: one["valueFrom"] for one in reader["env"] if "valueFrom" in one} == {
            API_KEY: {"secretKeyRef": {"name": "keys", "key": "api"}},
            ADMIN_KEY: {"secretKeyRef": {"name": "keys", "key": "admin"}},
        }
    assert all(set(ARGV) <= set(arm.argv) for arm in plan.arms)


def test_the_client_has_what_the_servers_environment_has_from_secrets_to_hide_it() -> None:
    """By engine.env and by podTemplate, whole Secrets too; what is missing keeps the server from starting, not it."""
    asked = run()
    value = {"secretKeyRef": {"name": "database", "key": "url"}}
    template = {"env": [{"name": "PROXY", "valueFrom": value}], "envFrom": [{"secretRef": {"name": "all"}}]}
    engine = dataclasses.replace(
        asked.server.engine,
        env=({"name": "DATABASE", "valueFrom": value}, {"name": "PLAIN", "value": "x"}),
        pod_template={"spec": {"containers": [{"name": "server", **template}]}},
    )
    told_all = dataclasses.replace(asked, server=dataclasses.replace(asked.server, engine=engine))
    plan = round_plan(RUN, told_all, told_all.arms, 0, 0)
    client = container(round_job(RUN, told_all, plan, ANYWHERE, SETTINGS)["spec"]["template"], "client")
    given = {one["name"]: one["valueFrom"] for one in client["env"] if "valueFrom" in one}
    optional = {"secretKeyRef": {"name": "database", "key": "url", "optional": True}}
    assert given == {"PACELINE_HIDE_PROXY": optional, "PACELINE_HIDE_DATABASE": optional}
    assert client["envFrom"] == [{"prefix": "PACELINE_HIDE_0_", "secretRef": {"name": "all", "optional": True}}]
    hides = read_keys({"PACELINE_HIDE_DATABASE": "postgres://u", "PACELINE_HIDE_0_ON": "true"})
    assert hides.hidden_in("postgres://u is not there: true") == "*** is not there: true"
    assert "postgres" not in repr(hides)


def test_what_the_spec_says_openly_is_compared_and_not_hidden() -> None:
    """A Secret may hold a data type, or a path that begins with the model's: every replicate would be said to run with
    "***" instead, and no round would be evidence."""
    keys = read_keys({f"{HIDE}DTYPE": "bfloat16", f"{HIDE}DIRECTORY": "/models/qwen3-8b", f"{HIDE}HUB": "hidden-token"})
    arm = arm_command("wide", expected={"dtype": "bfloat16", "draft": "/models"})
    resolved = {"dtype": "bfloat16", "draft": "/models", "said": "hidden-token"}
    result = RoundResult(round=0, try_=0, replicates=(Replicate(arm="wide", resolved=resolved),))
    (shown,) = keys.masked(result, {"bfloat16", "/models"}).replicates
    assert (arm.other_than_expected(shown.resolved), shown.resolved["said"]) == (None, "***")
