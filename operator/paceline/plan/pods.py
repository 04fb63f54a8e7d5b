"""What a pod says of itself: why it does not run, how it ended."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.engines.last_words import LONGEST, last_words
from paceline.plan.terms import Found

ON_ITS_WAY = ("ContainerCreating", "PodInitializing", "CrashLoopBackOff")
"""Why a container waits that has been or will be started. Of all other reasons (its image, its volumes, its name) the
kubelet knows more with every release, and they mean the same: it cannot be started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Why a pod is no use. `fatal`: trying again changes nothing, a person must act."""

    what: str
    fatal: bool = False


def trouble(pods: Iterable[Found]) -> Trouble | None:
    """The worst of these pods' troubles, in the order unplaced, unpulled, crashed; of equal ones the first pod's."""
    pods = list(pods)
    return next((found for kind in (unplaced, _unpulled, _crashed) for pod in pods if (found := kind(pod))), None)


def unplaced(pod: Found) -> Trouble | None:
    """In the scheduler's own words what is missing."""
    for found in pod.get("status", {}).get("conditions", ()):
        if found["type"] == "PodScheduled" and found["status"] == "False":
            return Trouble(what=f"not placed: {found.get('message', found.get('reason', ''))}")
    return None


def container(pod: Found, name: str) -> Mapping[str, Any]:
    """What the pod's status says of one of its containers: image, imageID, state."""
    statuses: Iterable[Mapping[str, Any]] = pod.get("status", {}).get("containerStatuses", ())
    return next((status for status in statuses if status["name"] == name), {})


def terminated(pod: Found, name: str) -> Mapping[str, Any] | None:
    """The `terminated` state of a container: exitCode, message, reason."""
    ended: Mapping[str, Any] | None = container(pod, name).get("state", {}).get("terminated")
    return ended


def failed_before(pod: Found) -> tuple[str, Mapping[str, Any]] | None:
    """Of the containers that run before the others, the one that ended badly: its name and its `terminated` state."""
    statuses: Iterable[Mapping[str, Any]] = pod.get("status", {}).get("initContainerStatuses", ())
    found = ((status["name"], status.get("state", {}).get("terminated") or {}) for status in statuses)
    return next(((name, ended) for name, ended in found if ended.get("exitCode")), None)


def not_startable(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """The `waiting` state of a container that the kubelet cannot start: reason, message. Empty for every other."""
    waiting: Mapping[str, Any] = status.get("state", {}).get("waiting") or {}
    return waiting if waiting.get("reason", ON_ITS_WAY[0]) not in ON_ITS_WAY else {}


def last_line(message: str, limit: int = LONGEST) -> str:
    """The last line that says something: of the kubelet and of our own programs, which end with their reason."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return lines[-1][-limit:] if lines else ""


def exit_text(who: str, ended: Mapping[str, Any]) -> str:
    """`the server exited with 2: error: unrecognized arguments: --x`, of a `terminated` state."""
    said = last_words(ended.get("message", "")) or ended.get("reason", "")
    return ": ".join(part for part in (f"the {who} exited with {ended.get('exitCode', 0)}", said) if part)


def _statuses(pod: Found) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """Of every container, the user's that run first included; whether ending well is all it is there for."""
    found, forever = pod.get("status", {}), pod["spec"].get("restartPolicy") != "Never"
    yield from ((status, True) for status in found.get("initContainerStatuses", ()))
    yield from ((status, not forever) for status in found.get("containerStatuses", ()))


def _unpulled(pod: Found) -> Trouble | None:
    for status, _ in _statuses(pod):
        if waiting := not_startable(status):
            return Trouble(what=f"{waiting['reason']}: {last_line(waiting.get('message', ''))}")
    return None


USAGE_ERROR = 2
"""argparse's exit code: the arguments will be as wrong the next time."""
MANY_RESTARTS = 3


def _crashed(pod: Found) -> Trouble | None:
    """A server that ends is always in trouble; what is there to end only if it did not end well."""
    for status, once in _statuses(pod):
        state = status.get("state", {})
        ended = state.get("terminated") or status.get("lastState", {}).get("terminated")
        if not ended or (once and not ended.get("exitCode")):
            continue
        hopeless = ended.get("exitCode") == USAGE_ERROR
        # It will end the same way again, so that it runs for a moment in between is no news.
        if "running" in state and (status.get("ready") or not hopeless):
            continue
        again = status.get("restartCount", 0) >= MANY_RESTARTS
        return Trouble(what=exit_text(status["name"], ended), fatal=hopeless or again)
    return None
