"""Noise, prompts, keys and settings."""

import hashlib
import math

import pytest

from paceline_emulator import auth, noise, prompts, settings
from paceline_emulator.prompts import chat_prompt, prompt


class TestNoise:
    def test_a_point_varies_by_the_asked_coefficient(self) -> None:
        logs = [math.log(noise.factor(0.003, "uid", ("--port", "1"), flush)) for flush in range(4000)]
        mean = sum(logs) / len(logs)
        deviation = math.sqrt(sum((value - mean) ** 2 for value in logs) / len(logs))
        assert deviation == pytest.approx(0.003, rel=0.05)
        assert abs(mean) < 0.0002

    def test_it_follows_from_pod_arm_and_flush(self) -> None:
        first = noise.factor(0.003, "uid", ("--a",), 1)
        assert first == noise.factor(0.003, "uid", ("--a",), 1)
        others = [("pod", ("--a",), 1), ("uid", ("--b",), 1), ("uid", ("--a",), 2)]
        assert all(noise.factor(0.003, *other) != first for other in others)

    def test_none_is_none(self) -> None:
        assert noise.factor(0.0, "uid", (), 3) == 1.0


KNOWN = {hashlib.sha256(b"Write a sort.").hexdigest()[:16]: "code"}


class TestPrompts:
    def test_a_dataset_is_known_by_its_last_user_message(self) -> None:
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Write a sort."}]
        parts = [{"role": "user", "content": [{"type": "text", "text": "Write a sort."}]}]
        assert chat_prompt(messages, KNOWN).dataset == chat_prompt(parts, KNOWN).dataset == "code"
        assert chat_prompt([*messages, {"role": "user", "content": "Thanks."}], KNOWN).dataset is None

    def test_lengths_are_natural_and_follow_from_the_text(self) -> None:
        lengths = [prompt(f"{i}", f"{i}", {}).natural_length for i in range(500)]
        assert lengths == [prompt(f"{i}", f"{i}", {}).natural_length for i in range(500)]
        assert 150 <= min(lengths) < 160
        assert 690 < max(lengths) <= 700

    def test_the_answer_is_the_same_however_it_is_cut(self) -> None:
        one = prompt("x", "x", {})
        whole = one.text(0, 40, ends=True)
        assert whole == one.text(0, 13, ends=False) + one.text(13, 40, ends=True)
        assert whole.endswith(".")

    def test_no_word_needs_escaping(self) -> None:
        assert not any(set(word) & set('"\\\n') for word in prompts.WORDS)


class TestKeys:
    @pytest.mark.parametrize(
        ("path", "bearer", "api_key", "admin_key", "allowed"),
        [
            ("/health", None, "k", "a", True),
            ("/metrics", None, "k", "a", True),
            ("/v1/models", None, None, None, True),
            ("/v1/models", None, "k", None, False),
            ("/v1/models", "k", "k", "a", True),
            ("/v1/models", None, None, "a", True),
            ("/flush_cache", None, None, None, True),
            ("/flush_cache", "k", "k", None, True),
            ("/flush_cache", "k", "k", "a", False),
            ("/flush_cache", "a", "k", "a", True),
            ("/flush_cache", None, None, "a", False),
        ],
    )
    def test_rules(
        self, path: str, bearer: str | None, api_key: str | None, admin_key: str | None, allowed: bool
    ) -> None:
        header = f"Bearer {bearer}" if bearer else None
        assert auth.allowed(path, header, api_key, admin_key) is allowed


class TestSettings:
    def test_defaults(self) -> None:
        told = settings.read({})
        assert (told.startup, told.noise, told.fail.of(True), told.die.of(False)) == (2.0, 0.003, None, None)

    def test_a_fault_can_be_for_some_servers_only(self) -> None:
        told = settings.read(
            {"PACELINE_EMULATE_FAIL_FRACTION": "0.5", "PACELINE_EMULATE_FAIL_FRACTION_WHEN": "speculative"}
        )
        assert (told.fail.of(True), told.fail.of(False)) == (0.5, None)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("PACELINE_EMULATE_NOISE_CV", "loud"),
            ("PACELINE_EMULATE_STARTUP_SECONDS", "nan"),
            ("PACELINE_EMULATE_FAIL_FRACTION_WHEN", "sometimes"),
        ],
    )
    def test_nonsense_is_named(self, name: str, value: str) -> None:
        with pytest.raises(ValueError, match=name):
            settings.read({name: value})
