"""A real browser without a window: Chromium over its DevTools protocol."""

import asyncio
import base64
import itertools
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

NAMES = ("chromium-headless-shell", "chromium", "google-chrome")
HEARD = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Network.requestWillBeSent")


class Page:
    """One tab; `console` and `requests` are what it said and asked for so far."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._loaded = 0
        self.console: list[str] = []
        self.requests: list[str] = []

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while (message := await self._hear()).get("id") != number:
            pass
        assert "error" not in message, f"{method}: {message}"
        result: dict[str, Any] = message["result"]
        return result

    async def open(self, url: str, *, width: int, height: int = 900, dark: bool = False) -> None:
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")
        phone = width < 600
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2, mobile=phone
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])
        before = self._loaded
        await self.call("Page.navigate", url=url)
        while self._loaded == before:
            await self._hear()

    async def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        return (await self.call("Runtime.evaluate", expression=expression, returnByValue=True))["result"]["value"]

    async def screenshot(self, width: int, height: int) -> bytes:
        """The page's first so many pixels, one for one."""
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        found = await self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(found["data"])

    async def pdf(self) -> bytes:
        return base64.b64decode((await self.call("Page.printToPDF", preferCSSPageSize=True))["data"])

    async def _hear(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(await asyncio.wait_for(self._socket.receive_str(), 60))
        method = message.get("method")
        self._loaded += method == "Page.loadEventFired"
        if method == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        elif method in HEARD:
            self.console.append(json.dumps(message["params"]))
        return message


@asynccontextmanager
async def browser(profile: Path) -> AsyncIterator[Page]:
    """A tab of a browser of its own, which keeps nothing."""
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    assert program, f"none of {', '.join(NAMES)} is installed: dev/install-browser"
    process = await asyncio.create_subprocess_exec(
        program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        port = await _port(profile / "DevToolsActivePort", process)
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                tabs = json.loads(await answer.text())
            tab = next(tab for tab in tabs if tab["type"] == "page")
            async with session.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                yield Page(socket)
    finally:
        # The program is a script that starts another one, which starts more: all are of the session.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        # A killed process is there until the kernel has taken it down, which on a busy machine is later.
        for _ in range(600):
            if not _alive(session=process.pid):
                break
            await asyncio.sleep(0.1)


async def _port(file: Path, process: asyncio.subprocess.Process) -> int:
    """The browser writes it there as soon as it listens."""
    for _ in range(600):
        assert process.returncode is None, f"the browser ended with {process.returncode}"
        if lines := _lines(file):
            return int(lines[0])
        await asyncio.sleep(0.1)
    raise AssertionError("the browser did not come up within a minute")


def _alive(*, session: int) -> bool:
    stats = [text.rpartition(")")[2].split() for file in Path("/proc").glob("[0-9]*/stat") if (text := _text(file))]
    return any(int(found) == session and state != "Z" for state, _, _, found, *_ in stats)


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # it ended
        return ""


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []
