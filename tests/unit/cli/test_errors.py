"""What `kubectl paceline` says when it cannot: each error names the way out."""

import asyncio
import json
import subprocess
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web
from tests.support.example_files import EXAMPLES
from tests.support.messages import Says
from tests.unit.kube.test_transport import talking_to

from paceline import cli
from paceline.cli.live import command
from paceline.cli.live.errors import said
from paceline.kube import ApiError, Unavailable
from paceline.kube.errors import error_of

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def refused(status: int, message: str) -> Handler:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response({"kind": "Status", "code": status, "message": message}, status=status)

    return answer


async def nothing(request: web.Request) -> web.StreamResponse:
    """No deployment, but the kind."""
    if request.path.endswith("/speculativedeployments"):
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})
    return await refused(404, "not found")(request)


async def two(request: web.Request) -> web.StreamResponse:
    if request.path.endswith("/speculativedeployments"):
        items = [{"metadata": {"name": name, "namespace": "models"}} for name in ("one", "two")]
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})
    return await refused(404, "not found")(request)


MAY_NOT = (
    'speculativedeployments.paceline.dev "coder" is forbidden: User "ann" cannot get resource "speculativedeployments" '
    'in API group "paceline.dev" in the namespace "models"'
)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (refused(401, "Unauthorized"), ("coder",)),
        (refused(403, MAY_NOT), ("coder",)),
        (refused(404, "not found"), ("coder",)),
        (nothing, ()),
        (two, ()),
        (two, ("three",)),
    ],
    ids=["unknown user", "no right", "no kind", "none there", "which one", "another name"],
)
@pytest.mark.parametrize("command", ["status", "retry"])
async def test_it_says_what_to_do(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    answer: Handler,
    words: tuple[str, ...],
    says: Says,
) -> None:
    async with talking_to(answer, tmp_path):
        asked = [command, *words, "-n", "models", "--kubeconfig", str(tmp_path / "kubeconfig")]
        assert await asyncio.to_thread(cli.plugin, asked) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"kubectl paceline {command}: ")
    says(said.err)


ESCAPES = "\x1b]0;renamed\x07 \x1b[2J\u202etxt\x9b31m"


@pytest.mark.parametrize(
    "error",
    [
        error_of(422, {"message": f"a webhook denied it: {ESCAPES}", "reason": "Invalid"}),
        error_of(403, {"message": f"a policy denied it: {ESCAPES}", "reason": "Forbidden"}),
        error_of(409, {"message": ESCAPES, "reason": "Conflict"}),
        error_of(500, {"message": ESCAPES}),
        Unavailable(0, "ClientConnectorError", ESCAPES),
    ],
    ids=lambda error: f"{error.status}",
)
def test_what_an_api_server_says_moves_no_cursor(error: ApiError) -> None:
    assert said(error).isprintable()
    assert "[2Jtxt" in said(error)


def test_nor_does_what_cannot_be_done(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: object) -> int:
        raise ValueError(f"--pool: {ESCAPES}")

    monkeypatch.setattr(command, "_connected", refused)
    assert command.run(refused, Namespace(program="kubectl paceline", command="status")) == 1
    assert capsys.readouterr().err.rstrip("\n").isprintable()


def test_a_cluster_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    clusters = [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}]
    contexts = [{"name": "x", "context": {"cluster": "c", "user": ""}}]
    written = {"clusters": clusters, "contexts": contexts, "users": [], "current-context": "x"}
    kubeconfig.write_text(json.dumps(written))
    assert cli.plugin(["status", "coder", "--kubeconfig", str(kubeconfig)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("kubectl paceline status: ")
    assert "--context, --kubeconfig or $KUBECONFIG" in said


def test_without_a_kubeconfig_it_says_how_to_name_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert cli.plugin(["why", "coder"]) == 1
    says(capsys.readouterr().err)


def test_a_reader_that_goes_away_is_no_error() -> None:
    """`paceline render FILE | head -1`"""
    with subprocess.Popen(
        [sys.executable, "-m", "paceline.cli", "render", str(EXAMPLES / "qwen3-coder-next.yaml")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout
        assert running.stderr
        running.stdout.close()
        assert (running.stderr.read(), running.wait(60)) == (b"", 141)
