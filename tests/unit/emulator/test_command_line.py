"""Flags, defaults, silent rewriting and refusals, as SGLang 0.5.23 has them."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.running import HEAD, TARGET, model

import paceline_emulator
from paceline_emulator import flags, resolve, settings
from paceline_emulator.resolve import Launch


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A target and its head."""
    home = tmp_path_factory.mktemp("models")
    return model(home / "target", TARGET), model(home / "head", HEAD)


def parse(*argv: str) -> dict[str, Any]:
    return flags.parse(["--model-path", "m", *argv])


class TestParsing:
    def test_every_flag_of_the_list_is_known(self) -> None:
        assert len(flags.parser()._actions) > 531

    @pytest.mark.parametrize(
        ("argv", "said"),
        [
            (["--foo"], "error: unrecognized arguments: --foo"),
            (["--enable-ep-moe"], "error: unrecognized arguments: --enable-ep-moe"),
            (["--cuda-graph-max-bs", "8"], "error: ambiguous option: --cuda-graph-max-bs could match"),
            (["--pp", "2"], "error: ambiguous option: --pp could match"),
            (["--tp-size", "two"], "invalid int value: 'two'"),
            (["--load-format", "bogus"], "invalid choice: 'bogus'"),
            (["--context-length", "1.5Ki"], "Decimals are not allowed with IEC suffixes"),
        ],
    )
    def test_what_argparse_refuses_ends_with_2(
        self, argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit) as left:
            parse(*argv)
        assert left.value.code == 2
        shown = capsys.readouterr().err
        assert shown.startswith("usage: sglang serve")
        assert said in shown

    def test_the_program_takes_its_own_words(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sys.argv", ["paceline-emulator", "--model-path", "m", "--foo"])
        with pytest.raises(SystemExit) as left:
            paceline_emulator.main()
        assert left.value.code == 2
        assert capsys.readouterr().err.endswith("sglang serve: error: unrecognized arguments: --foo\n")

    def test_the_model_is_required(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            flags.parse([])
        assert "the following arguments are required: --model-path/--model" in capsys.readouterr().err

    def test_unambiguous_prefixes_work(self) -> None:
        found = parse("--tp", "2", "--speculative-alg", "EAGLE3")
        assert (found["tp_size"], found["speculative_algorithm"]) == (2, "EAGLE3")

    def test_defaults(self) -> None:
        found = parse()
        assert (found["host"], found["port"], found["decode_log_interval"]) == ("127.0.0.1", 30000, 40)

    @pytest.mark.parametrize(("text", "tokens"), [("8k", 8000), ("8Ki", 8192), ("1.5k", 1500), ("4096", 4096)])
    def test_lengths_for_people(self, text: str, tokens: int) -> None:
        assert parse("--context-length", text)["context_length"] == tokens

    def test_sglang_serve_names_the_model_first(self) -> None:
        assert flags.parse(["some/model", "--port", "1"])["model_path"] == "some/model"


class Resolver:
    """Resolves a command line and keeps what was warned of."""

    def __init__(self, paths: tuple[str, str]) -> None:
        self.target, self.head = paths
        self.warned: list[str] = []

    def __call__(self, *argv: str, **env: str) -> Launch:
        told = settings.read({"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1", **env})
        return resolve.resolve(flags.parse(["--model-path", self.target, *argv]), told, self.warned.append)

    def eagle3(self, *argv: str, **env: str) -> Launch:
        head = ("--speculative-draft-model-path", self.head)
        return self("--speculative-algorithm", "EAGLE3", *head, *argv, **env)


@pytest.fixture
def resolved(paths: tuple[str, str]) -> Resolver:
    return Resolver(paths)


def tree(steps: int | None, topk: int | None, tokens: int | None) -> list[str]:
    names = ("num-steps", "eagle-topk", "num-draft-tokens")
    given = zip(names, (steps, topk, tokens), strict=True)
    return [word for name, value in given if value is not None for word in (f"--speculative-{name}", str(value))]


def tree_of(launch: Launch) -> tuple[int, int, int]:
    args = launch.args
    return args["speculative_num_steps"], args["speculative_eagle_topk"], args["speculative_num_draft_tokens"]


class TestResolution:
    def test_speculation_lowers_the_running_requests_to_48(self, resolved: Resolver) -> None:
        assert resolved().args["max_running_requests"] is None
        assert resolved.eagle3(*tree(3, 4, 8)).args["max_running_requests"] == 48
        assert resolved.eagle3(*tree(3, 4, 8), "--max-running-requests", "64").running_requests == 64
        assert sum("reset to 48" in warning for warning in resolved.warned) == 1

    def test_a_chain_has_one_free_number(self, resolved: Resolver) -> None:
        assert tree_of(resolved.eagle3(*tree(3, 1, 9))) == (3, 1, 4)
        assert any("is adjusted to speculative_num_steps + 1" in warning for warning in resolved.warned)

    def test_a_tree_left_out_is_chosen(self, resolved: Resolver) -> None:
        assert tree_of(resolved.eagle3()) == (3, 1, 4)

    def test_ngram(self, resolved: Resolver) -> None:
        assert tree_of(resolved("--speculative-algorithm", "ngram")) == (1, 10, 12)

    def test_nextn_is_eagle(self, resolved: Resolver) -> None:
        found = resolved("--speculative-algorithm", "NEXTN", "--speculative-draft-model-path", resolved.head)
        assert found.args["speculative_algorithm"] == "EAGLE"

    def test_a_head_without_an_algorithm_is_ignored(self, resolved: Resolver) -> None:
        assert not resolved("--speculative-draft-model-path", "nowhere").speculative

    @pytest.mark.parametrize(
        ("argv", "backend"),
        [
            ([], "fa3"),
            (tree(3, 1, 4), "fa3"),
            (tree(3, 4, 8), "flashinfer"),
            ([*tree(3, 1, 4), "--page-size", "64"], "flashinfer"),
            ([*tree(3, 4, 8), "--attention-backend", "triton"], "triton"),
        ],
    )
    def test_the_attention_backend_depends_on_the_tree(self, resolved: Resolver, argv: list[str], backend: str) -> None:
        assert resolved.eagle3(*argv).args["attention_backend"] == backend

    def test_a_model_in_the_hubs_cache(self, resolved: Resolver, tmp_path: Path) -> None:
        home = tmp_path / "models--org--name"
        model(home / "snapshots" / "abc", TARGET)
        (home / "refs").mkdir()
        (home / "refs" / "main").write_text("abc")
        env = {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path)}
        assert resolved("--model-path", "org/name", **env).target.config == TARGET


REFUSED = [
    (["--speculative-algorithm", "BOGUS"], ValueError, "Unknown speculative algorithm name: BOGUS"),
    (["--speculative-algorithm", "EAGLE3", *tree(3, 4, 8)], AttributeError, "hot_token_id"),
    (["--speculative-algorithm", "DFLASH"], ValueError, "requires setting --speculative-draft-model-path"),
    (["--speculative-algorithm", "UNO"], ValueError, "UNO requires --uno-lora-path."),
    (["--served-model-name", "a:b"], AssertionError, "cannot contain a colon"),
    (["--model-path", "Qwen/Qwen3-Coder-Next"], OSError, "We couldn't connect to 'https://huggingface.co'"),
    (["--model-path", "/nowhere"], OSError, "/nowhere is not a local folder"),
    (["--context-length", "300000"], ValueError, "set the env var SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"),
]
REFUSED_WITH_A_HEAD = [
    (tree(None, 4, None), AssertionError, ""),
    (tree(None, None, 8), AssertionError, ""),
    (tree(3, None, None), TypeError, "'>' not supported between instances of 'NoneType' and 'int'"),
    (tree(3, 4, None), TypeError, "NoneType"),
    (tree(1, 2, 8), RuntimeError, "selected index k out of range"),
    ([*tree(3, 4, 8), "--attention-backend", "trtllm_mha"], ValueError, "only supports topk = 1"),
    (
        [*tree(3, 4, 8), "--attention-backend", "torch_native", "--page-size", "16"],
        ValueError,
        "speculative_eagle_topk > 1 with page_size > 1 is only supported on ('flashinfer', 'fa3', 'triton')",
    ),
    ([*tree(3, 4, 8), "--speculative-use-rejection-sampling"], ValueError, "requires --speculative-eagle-topk=1"),
    ([*tree(3, 1, 4), "--weight-cache-mode", "client"], ValueError, "does not support speculative decoding"),
    ([*tree(3, 1, 4), "--attention-backend", "flex_attention"], AssertionError, "Flex Attention"),
    ([*tree(3, 1, 4), "--pp-size", "2"], AssertionError, "Pipeline parallelism"),
]


class TestRefusals:
    @pytest.mark.parametrize(("argv", "kind", "said"), REFUSED)
    def test_by_itself(self, resolved: Resolver, argv: list[str], kind: type[Exception], said: str) -> None:
        env = {"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "0"}
        with pytest.raises(kind) as refusal:
            resolved(*argv, **env)
        assert said in str(refusal.value)

    @pytest.mark.parametrize(("argv", "kind", "said"), REFUSED_WITH_A_HEAD)
    def test_with_a_head(self, resolved: Resolver, argv: list[str], kind: type[Exception], said: str) -> None:
        with pytest.raises(kind) as refusal:
            resolved.eagle3(*argv)
        assert said in str(refusal.value)

    def test_a_head_shorter_than_its_target_needs_the_environments_consent(self, resolved: Resolver) -> None:
        with pytest.raises(ValueError, match=r"Target model's context_length \(262144\) is greater than .*\(4096\)"):
            resolved.eagle3(*tree(3, 4, 8), SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN="0")
        assert resolved.eagle3(*tree(3, 4, 8), "--context-length", "4096").speculative
