"""Errors of the API server: one class for each way in which callers react."""
# ruff: noqa: N818 (these are the server's words, not ours)

from collections.abc import Mapping
from typing import Any


class ApiError(Exception):
    """The request failed. `status` is the HTTP status (0: no answer), `reason` is Kubernetes' word for it."""

    def __init__(self, status: int, reason: str, message: str, retry_after: float = 0.0) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        """Seconds the server asks us to wait; 0 if it does not say."""


class NotFound(ApiError):
    """404: the object, its namespace or its kind is not there."""


class Conflict(ApiError):
    """409: someone else's version, uid or field, or the name is taken. Look again, then decide."""


class Gone(ApiError):
    """410: the version asked for is no longer kept. List again."""


class Invalid(ApiError):
    """400, 422: this object will never be accepted as it is."""


class Forbidden(ApiError):
    """401, 403: we lack permission."""


class TooManyRequests(ApiError):
    """429: try again later, see `retry_after`."""


class Unavailable(ApiError):
    """5xx, a timeout, no connection, a broken answer. A write may or may not have happened."""


BY_STATUS: Mapping[int, type[ApiError]] = {
    400: Invalid,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def error_of(status: int, answer: Mapping[str, Any], retry_after: float = 0.0) -> ApiError:
    """The exception for a metav1.Status `answer`. Two statuses are ambiguous (1.34): an apply that does not fit the
    schema is a 500, and an apply with another object's uid is a 422. A proxy in between may answer with any JSON."""
    details = answer.get("details")
    causes = details.get("causes") if isinstance(details, Mapping) else ()
    fields = [cause.get("field") for cause in causes if isinstance(cause, Mapping)] if isinstance(causes, list) else []
    reason, message = (str(answer.get(name) or "") for name in ("reason", "message"))
    if status == 422 and "metadata.uid" in fields:
        kind: type[ApiError] = Conflict
    elif status == 500 and "failed to create typed patch object" in message:
        kind = Invalid
    else:
        kind = Unavailable if status >= 500 else BY_STATUS.get(status, ApiError)
    return kind(status, reason or "Unknown", message, retry_after)
