"""A round's last container ends as its client says."""

from pathlib import Path

import pytest

from paceline.pods.round import conclude
from paceline.pods.round.control import end_round


@pytest.fixture
def message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The termination message."""
    (tmp_path / "in").mkdir()
    monkeypatch.setenv("PACELINE_CTL", str(tmp_path))
    monkeypatch.setenv("PACELINE_TERMINATION_LOG", str(tmp_path / "message"))
    return tmp_path / "message"


@pytest.mark.parametrize(("code", "said"), [(0, ""), (1, "the round failed: two\nlines")])
def test_code_and_message_are_the_clients(message: Path, code: int, said: str) -> None:
    end_round(message.parent, code, said)
    assert (conclude.main(), message.read_text()) == (code, said)


def test_a_client_that_does_not_end_fails_the_round(message: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conclude, "CLIENT_SECONDS", 0.0)
    assert conclude.main() == 1
    assert "did not end in 0 s" in message.read_text()
