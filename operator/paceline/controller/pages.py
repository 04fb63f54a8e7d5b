"""The counters of servers, as their own pages have them.

The operator does not trust pods: an answer is bounded in size and time, no redirect is followed, and nothing that could
authorize is sent.
"""

import asyncio
from collections.abc import Mapping, Sequence

import aiohttp

from paceline.engines import Counts, Monitor, UnreadableError
from paceline.kube import Manifest
from paceline.kube.reading import TooLong, read_body
from paceline.watch import Process

AT_ONCE = 32
"""Pages that are read at the same time."""
PAGE_TIMEOUT = aiohttp.ClientTimeout(total=10, sock_connect=3)
"""For a page, once its turn has come. A server collects it beside its work: SGLang's took 20 ms at rest."""
LONGEST_PAGE = 4 * 2**20
"""Bytes. SGLang's has 91,000 with one label set; every rank, and every label of the user's, multiplies that."""
_SERVER = "server"
"""The container."""
FAILURES = (aiohttp.ClientError, OSError, TooLong, UnreadableError, ValueError)
"""What reading somebody's answer may end with; ValueError: it is no HTTP, no JSON, no URL."""


def session() -> aiohttp.ClientSession:
    """No cookies, no proxy, no compression, and no connection that outlives its page: a server closes it before the
    next look."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=PAGE_TIMEOUT,
        headers={"Accept-Encoding": "identity", "User-Agent": "paceline"},
    )


def url(pod: Manifest, port: int, path: str) -> str:
    address = pod["status"]["podIP"]
    return f"http://[{address}]:{port}{path}" if ":" in address else f"http://{address}:{port}{path}"


def process_of(pod: Manifest) -> Process:
    """A restarted container counts from zero, as another pod of the same name does."""
    statuses = pod["status"].get("containerStatuses") or ()
    container = next((each.get("containerID", "") for each in statuses if each["name"] == _SERVER), "")
    return Process(pod=pod["metadata"]["name"], started=f"{pod['metadata']['uid']} {container}")


async def from_pods(
    http: aiohttp.ClientSession, at_once: asyncio.Semaphore, monitor: Monitor, pods: Sequence[Manifest], port: int
) -> Mapping[Process, Counts | str]:
    """What each pod has counted, or why it could not be read. `at_once` bounds how many are read at the same time: time
    spent in wait for it is not the server's."""
    pages = await asyncio.gather(*(_counts(http, at_once, monitor, pod, port) for pod in pods))
    return {process_of(pod): page for pod, page in zip(pods, pages, strict=True)}


async def _counts(
    http: aiohttp.ClientSession, at_once: asyncio.Semaphore, monitor: Monitor, pod: Manifest, port: int
) -> Counts | str:
    name = pod["metadata"]["name"]
    try:
        async with at_once, http.get(url(pod, port, monitor.path), allow_redirects=False) as answer:
            if answer.status != 200:
                return f"{name}: {monitor.path} answered {answer.status}"
            return monitor.read(await read_body(answer.content, LONGEST_PAGE))
    except FAILURES as error:
        return f"{name}: {str(error) or type(error).__name__}"
