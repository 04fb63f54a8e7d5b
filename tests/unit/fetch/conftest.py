"""A fetch pod and the hub it asks: both real, on loopback."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from paceline.fetching import FetchFailure, FetchResult
from paceline_emulator.hub import Repository, application, generated

TARGET, HEAD = "Qwen/Qwen3-Coder-Next", "thoughtworks/Qwen3-Coder-Next-Eagle3"
GENERATED = generated()

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Hub:
    """`asked` has every request as "METHOD path" with its Range; `answer` may take a request's answer over."""

    port: int
    repositories: dict[str, Repository]
    asked: list[str] = field(default_factory=list)
    answer: Callable[[web.Request, Handler], Awaitable[web.StreamResponse]] | None = None

    @property
    def downloads(self) -> list[str]:
        return [line for line in self.asked if line.startswith("GET") and "/resolve/" in line]

    def commit(self, name: str) -> str:
        return self.repositories[name].history[-1].commit


@pytest.fixture
async def hub() -> AsyncIterator[Hub]:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        hub = Hub(port=chosen.getsockname()[1], repositories=dict(GENERATED))

    @web.middleware
    async def watch(request: web.Request, handler: Handler) -> web.StreamResponse:
        hub.asked.append(f"{request.method} {request.path} {request.headers.get('Range', '')}".strip())
        return await (hub.answer(request, handler) if hub.answer else handler(request))

    app = application(hub.repositories)
    app.middlewares.append(watch)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", hub.port).start()
    yield hub
    await runner.cleanup()


@dataclass
class Ended:
    code: int
    termination_message: str
    log: str

    @property
    def message(self) -> str:
        """Of a fetch that failed, the sentence."""
        return self.failure.sentence

    @property
    def failure(self) -> FetchFailure:
        return FetchFailure.from_message(self.termination_message)

    def models(self) -> dict[str, Any]:
        return {one.source.removeprefix("hf://"): asdict(one) for one in FetchResult.from_message(self.message).models}


@dataclass
class Pod:
    """Runs fetches on one volume, as the Job does."""

    volume: Path
    hub: Hub
    number: int = 0
    mere_user: bool = False
    """Permissions count for it: tests may be root, for whom they do not."""

    async def start(
        self, *names: str, environment: dict[str, str] | None = None, sources: Sequence[str] = (), **request: Any
    ) -> tuple[asyncio.subprocess.Process, Path]:
        self.number += 1
        home = self.volume.parent / f"pod-{self.number}"
        home.mkdir()
        models = [dict(zip(("source", "revision"), f"hf://{name}".split("@"), strict=False)) for name in names]
        models += [{"source": source} for source in sources]
        process = await asyncio.create_subprocess_exec(
            *(
                ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
                if self.mere_user and not os.getuid()
                else ()
            ),
            *(sys.executable, "-m", "paceline.pods.fetch"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
                "HOME": str(home),
                "HF_ENDPOINT": f"http://127.0.0.1:{self.hub.port}",
                "PACELINE_TERMINATION_MESSAGE_PATH": str(home / "message"),
                "PACELINE_FETCH": json.dumps({"models": models, "path": str(self.volume), **request}),
                **(environment or {}),
            },
        )
        return process, home / "message"

    async def end(self, started: tuple[asyncio.subprocess.Process, Path]) -> Ended:
        process, message = started
        log, _ = await process.communicate()
        text = message.read_text() if message.exists() else ""
        assert len(text.encode()) <= 4096
        return Ended(code=process.returncode or 0, termination_message=text, log=log.decode())

    async def fetch(self, *names: str, environment: dict[str, str] | None = None, **request: Any) -> Ended:
        return await self.end(await self.start(*names, environment=environment, **request))


@pytest.fixture
def pod(tmp_path: Path, hub: Hub) -> Pod:
    volume = tmp_path / "models"
    volume.mkdir(exist_ok=True)
    return Pod(volume=volume, hub=hub)
