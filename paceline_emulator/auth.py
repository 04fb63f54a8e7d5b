"""Who may call what: SGLang's own rules (srt/utils/auth.py of 0.5.23), as one pure function."""

import secrets

OPEN = ("/health", "/ready", "/metrics")
ADMIN = (
    "/flush_cache", "/abort_request", "/pause_generation", "/continue_generation", "/set_internal_state", "/freeze_gc",
)  # fmt: skip


def allowed(path: str, authorization: str | None, api_key: str | None, admin_key: str | None) -> bool:
    """Probes and metrics: always. Administration: the admin key alone if there is one, else the API key if any.

    Everything else: the API key if there is one.
    """
    if path.startswith(OPEN):
        return True
    needed = (admin_key or api_key) if path in ADMIN else api_key
    return not needed or _bears(authorization, needed)


def _bears(authorization: str | None, key: str) -> bool:
    scheme, _, token = (authorization or "").partition(" ")
    return scheme.lower() == "bearer" and secrets.compare_digest(token.encode(), key.encode())
