"""What looks like a secret in a foreign text, and known ones, whole or cut."""

import pytest

from paceline.core.masking import without, without_secrets
from paceline.plan.trouble import exit_text, last_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ServerArgs(api_key='abc', admin_api_key=None, x=1)", "ServerArgs(api_key='***', admin_api_key=None, x=1)"),
        ("serve --api-key abc --port 1", "serve --api-key *** --port 1"),
        ("['--admin-api-key', 'abc', '--port']", "['--admin-api-key', '***', '--port']"),
        ('{"api_key": "abc def", "a": 1}', '{"api_key": "***", "a": 1}'),
        ("HF_TOKEN=abc VLLM_API_KEY=def", "HF_TOKEN=*** VLLM_API_KEY=***"),
        ("token hf_abcdefghijkl is revoked", "token *** is revoked"),
        ("curl -H 'Authorization: Bearer abc'", "curl -H 'Authorization: Bearer ***'"),
        ("401 of https://u:pw@host/x", "401 of https://***@host/x"),
        ("password = abc", "password = ***"),
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "error: unrecognized arguments: --x",
        "ValueError: api_key: Extra inputs are not permitted",
        'MountVolume.SetUp failed for volume "keys" : secret "keys" not found',
        "couldn't find key api in Secret team/keys",
        "tokens=5 max_tokens: '7' tokenizer='a/b'",
    ],
)
def test_what_a_person_needs_is_not(text: str) -> None:
    assert without_secrets(text) == text


@pytest.mark.parametrize("cut", ["abc sk-secr", "ret-key xyz", "sk-secret-", "x sk-secret-key y"])
def test_a_known_secret_is_hidden_also_where_a_text_was_cut_within_it(cut: str) -> None:
    shown = without(cut, ["sk-secret-key"])
    assert "***" in shown
    assert "secr" not in shown
    assert "ret-" not in shown


def test_the_operator_repeats_no_secret_of_a_log() -> None:
    """It knows none: the kubelet gives it the last lines of a server that serves."""
    log = "server_args=ServerArgs(api_key='abc')\nValueError: cannot use HF_TOKEN=hf_abcdefghijkl"
    assert exit_text("server", {"exitCode": 1, "message": log}) == (
        "the server exited with 1: ValueError: cannot use HF_TOKEN=***"
    )
    assert last_line(log) == "ValueError: cannot use HF_TOKEN=***"
