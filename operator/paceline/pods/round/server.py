"""HTTP to the arm's server, on localhost and past any proxy."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any

from paceline.pods.round.steps import ServerFailed

TIMEOUT_SECONDS = 30.0
CHAT = "/v1/chat/completions"
LONGEST_REFUSAL = 200
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


def ask(url: str, body: Mapping[str, Any], key: str, timeout_seconds: float) -> Mapping[str, Any] | str:
    """The whole answer, or why there is none; raises ServerFailed for one that does not come."""
    try:
        with _direct.open(_request(url + CHAT, "POST", key, body), timeout=timeout_seconds) as answer:
            found = json.loads(answer.read())
            return found if isinstance(found, dict) else "the answer is no object"
    except urllib.error.HTTPError as error:
        said = error.read(LONGEST_REFUSAL).decode(errors="replace")
        return f"HTTP {error.code}: {said}"
    except TimeoutError as error:
        raise ServerFailed(f"a prompt of parity timed out after {timeout_seconds:.0f} s") from error
    except (OSError, HTTPException, ValueError) as error:
        return f"POST {CHAT}: {error}"


def _request(url: str, method: str, key: str, body: Mapping[str, Any] | None = None) -> urllib.request.Request:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    if body is None:
        return urllib.request.Request(url, method=method, headers=headers)
    headers["Content-Type"] = "application/json"
    return urllib.request.Request(url, json.dumps(body).encode(), method=method, headers=headers)
