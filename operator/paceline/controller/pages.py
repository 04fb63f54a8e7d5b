"""Reads the counters of servers from the servers' `/metrics`.

The operator does not trust pods: an answer is bounded in size and time, redirects are not followed, and no credentials
are sent.
"""

import asyncio
from collections.abc import Mapping, Sequence

import aiohttp

from paceline.engines import Counts, Monitor, UnreadableError
from paceline.kube import Manifest
from paceline.kube.reading import TooLong, read_body
from paceline.watch import Process

AT_ONCE = 32
"""Maximum number of servers read at the same time."""
PAGE_TIMEOUT = aiohttp.ClientTimeout(total=10, sock_connect=3)
"""Time to read one server, once its turn has come. A server collects the metrics alongside its work: an idle SGLang
took 20 ms."""
LONGEST_PAGE = 4 * 2**20
"""Maximum bytes of a response. SGLang's has 91,000 with one label set; each rank, and each of the user's labels,
multiplies that."""
_SERVER = "server"
"""Name of the container."""
FAILURES = (aiohttp.ClientError, OSError, TooLong, UnreadableError, ValueError)
"""Errors of reading an untrusted answer; ValueError: it is not HTTP, not JSON or not a URL."""


def session() -> aiohttp.ClientSession:
    """A session without cookies, proxy, compression or connection reuse: servers close idle connections before the next
    look."""
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
    """Identifies a process: a restarted container counts from zero, like another pod of the same name."""
    statuses = pod["status"].get("containerStatuses") or ()
    container = next((each.get("containerID", "") for each in statuses if each["name"] == _SERVER), "")
    return Process(pod=pod["metadata"]["name"], started=f"{pod['metadata']['uid']} {container}")


async def from_pods(
    http: aiohttp.ClientSession, at_once: asyncio.Semaphore, monitor: Monitor, pods: Sequence[Manifest], port: int
) -> Mapping[Process, Counts | str]:
    """Each pod's counters, or why they could not be read. `at_once` limits concurrent reads; the time spent waiting for
    it does not count against the server's timeout."""
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
