"""HTTP to the arm's server, on localhost and past any proxy."""

import time
import urllib.error
import urllib.request

from paceline.pods.round.steps import ServerFailed

TIMEOUT_SECONDS = 30.0
FLUSH_TRIES = 5
FLUSH_PAUSE_SECONDS = 1.0

_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def is_ready(url: str, path: str, timeout_seconds: float) -> bool:
    try:
        with _direct.open(url + path, timeout=timeout_seconds) as answer:
            return bool(answer.status == 200)
    except OSError:  # refused, timed out, or an HTTP status that says no
        return False


def get(url: str, path: str, key: str = "") -> str:
    """The body of a page; raises ServerFailed."""
    try:
        with _direct.open(_request(url + path, "GET", key), timeout=TIMEOUT_SECONDS) as answer:
            return str(answer.read().decode())
    except (OSError, ValueError) as error:
        raise ServerFailed(f"GET {path}: {error}") from error


def flush(url: str, path: str, key: str = "") -> None:
    """Empty the cache. A server that is not idle yet refuses with 400 and is asked again."""
    for last in [False] * (FLUSH_TRIES - 1) + [True]:
        try:
            with _direct.open(_request(url + path, "POST", key), timeout=2 * TIMEOUT_SECONDS):
                return
        except urllib.error.HTTPError as error:
            if last or error.code != 400:
                raise ServerFailed(f"POST {path}: {error}") from error
        except OSError as error:
            raise ServerFailed(f"POST {path}: {error}") from error
        time.sleep(FLUSH_PAUSE_SECONDS)


def _request(url: str, method: str, key: str) -> urllib.request.Request:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return urllib.request.Request(url, method=method, headers=headers)
