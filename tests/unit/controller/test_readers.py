"""Who may read the metrics, and for how long an answer of the API server holds."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from paceline.controller.readers import (
    ALLOWED_SECONDS,
    AWAY_SECONDS,
    LONGEST_TOKEN,
    MOST_TOKENS,
    REFUSED_SECONDS,
    Readers,
)
from paceline.kube import Unavailable

SCRAPER = {"username": "system:serviceaccount:monitoring:prometheus", "groups": ["system:authenticated"], "uid": "1"}


@dataclass
class Reviewing:
    """An API server that knows one token, and lets its owner read as long as `allows`; and a clock."""

    allows: bool = True
    away: bool = False
    now: float = 1000.0
    asked: list[dict[str, Any]] = field(default_factory=list)

    async def create(self, review: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(review)
        if self.away:
            raise Unavailable(0, "ClientConnectorError", "away")
        if review["kind"] == "TokenReview":
            known = review["spec"]["token"] == "good"
            return {"status": {"authenticated": True, "user": SCRAPER} if known else {"error": "unknown"}}
        return {"status": {"allowed": self.allows}}

    @property
    def readers(self) -> Readers:
        return Readers(self.create, lambda: self.now)


async def test_the_owner_of_a_token_is_asked_about_by_name_groups_and_uid() -> None:
    server = Reviewing()
    assert await server.readers.status("Bearer good") == 200
    token, access = server.asked
    assert token["spec"] == {"token": "good"}
    assert access["spec"] == {
        "user": SCRAPER["username"],
        "groups": SCRAPER["groups"],
        "uid": "1",
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic good", "good", f"Bearer {'x' * LONGEST_TOKEN}x"])
async def test_what_is_no_token_is_refused_without_asking(header: str) -> None:
    server = Reviewing()
    assert await server.readers.status(header) == 401
    assert server.asked == []


async def test_an_unknown_token_and_one_that_may_not_are_told_apart() -> None:
    assert await Reviewing().readers.status("Bearer other") == 401
    assert await Reviewing(allows=False).readers.status("bearer good") == 403


async def test_an_answer_holds_for_a_minute_and_a_refusal_for_ten_seconds() -> None:
    server = Reviewing()
    readers = server.readers
    for seconds, allows, status, asks in (
        (0, True, 200, 2),
        (ALLOWED_SECONDS - 1, False, 200, 2),
        (1, False, 403, 4),
        (REFUSED_SECONDS - 1, True, 403, 4),
        (1, True, 200, 6),
    ):
        server.now += seconds
        server.allows = allows
        assert (await readers.status("Bearer good"), len(server.asked)) == (status, asks)


async def test_while_the_api_server_is_away_who_was_let_in_stays_and_nobody_else_comes_in() -> None:
    server = Reviewing()
    readers = server.readers
    assert await readers.status("Bearer good") == 200
    server.away = True
    server.now += AWAY_SECONDS - 1
    assert await readers.status("Bearer good") == 200
    assert await readers.status("Bearer other") == 503
    server.now += 1
    assert await readers.status("Bearer good") == 503


async def test_many_tokens_are_not_all_kept_and_none_is_kept_as_it_is() -> None:
    server = Reviewing()
    readers = server.readers
    for number in range(MOST_TOKENS + 50):
        assert await readers.status(f"Bearer {number}") == 401
    assert len(readers._known) == MOST_TOKENS
    assert all(len(key) == 32 for key in readers._known)
    assert await readers.status("Bearer good") == 200
