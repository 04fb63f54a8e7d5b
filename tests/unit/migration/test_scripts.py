"""What is read of a script is what a shell runs: each is run by the shells that are here, with programs that only note
their words. A script that import does not read is refused in one sentence."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.messages import Says

from paceline.cli.importing.command import Launch, launch
from paceline.engines.importing import UnansweredError

SHELLS = [shell for shell in ("sh", "bash") if shutil.which(shell)]
STUBS = {
    **dict.fromkeys(
        ("sglang", "vllm", "python3"),
        'test -e "$STARTED" || { printf "%s\\0" "$@" >"$STARTED"; env -0 >"$STARTED.env"; }',
    ),
    **dict.fromkeys(("pip", "hf", "curl", "huggingface-cli"), "exit 0"),
    "numactl": 'shift 2; exec "$@"',
}
"""Program → what it does."""
Script = tuple[str, Mapping[str, str]]

READ: Mapping[str, Script] = {
    "exec": ("exec sglang serve --model-path a/b --tp 2", {}),
    "lines that go on": ("exec python3 -m sglang.launch_server \\\n  --model-path a/b \\\n  --tp 2\n", {}),
    "quotes": ("""vllm serve a/b --json '{"min_p": 0}' --x "it's" --y don\\'t --z='a'"b"c ''""", {}),
    "a template of several lines": ("exec vllm serve a/b --chat-template 'line 1\n# heading\nline 2'", {}),
    "an exported variable": ("export TP=4\nexec sglang serve --model-path a/b --tp $TP", {}),
    "a variable": ('MODEL=a/b; vllm serve "$MODEL" --tp ${TP}', {"TP": "2"}),
    "variables for the engine alone": ("OMP_NUM_THREADS=8 TP=3 vllm serve a/b --tp $TP", {"TP": "2"}),
    "a default": ("exec sglang serve --model-path ${MODEL:-a/b} --port ${PORT:-30000}", {}),
    "a default of two words": ('exec vllm serve a/b --x "${X:-a  b}" ${X:-c  d}', {}),
    "a default in quotes": ("""exec sglang serve --model-path a/b --x ${X:-"c  d"}""", {}),
    "a default that does not count": ("exec vllm serve ${MODEL:-a/b} --tp ${TP:-2}", {"MODEL": "c/d", "TP": ""}),
    "a variable of several words": ("exec sglang serve $EXTRA --x", {"EXTRA": " --model-path a/b  --tp 2 "}),
    "a variable of several words in quotes": ('exec vllm serve a/b --x "$EXTRA"y', {"EXTRA": "1  2 "}),
    "a variable within a word": ("exec vllm serve a/b --x=1$EXTRA'4'$EXTRA", {"EXTRA": "2 3"}),
    "empty variables": ('exec vllm serve a/b $EMPTY "$EMPTY" x$EMPTY', {"EMPTY": ""}),
    "tee": ("vllm serve a/b 2>&1 | tee /dev/null", {}),
    "redirections": ("exec vllm serve a/b --tp 2 >/dev/null 2>&1 </dev/null", {}),
    "set": ("set -ex\n# the parser's wheel\npip install /wheels/parser.whl\nexec vllm serve a/b", {}),
    "a program before &&": ("pip install -U x[cli] &&\n export A=1 && exec sglang serve --model-path a/b$A", {}),
    "a download": ("hf download Q/R --local-dir /m/q --revision v1 && sglang serve --model-path /m/q", {}),
    "a comment behind the words": ("vllm serve a/b # don't: --enforce-eager", {}),
    "a comment between lines that go on": ("exec vllm serve a/b \\\n  # --tp 2 \\\n  --never", {}),
    "no comments": ("vllm serve a/b --name x#y '#z' \"#\" \\#", {}),
    "env": ("env CUDA_VISIBLE_DEVICES=0 'X=a b' vllm serve a/b", {}),
    "numactl": ("numactl -N 0 vllm serve a/b --tp 2", {}),
    "dollars": ("vllm serve a/b --x 'a$b' --y \"\\$HOME\" --w \"a\\`b\" \"a$\"", {}),
    "backslashes": (r"""vllm serve a/b --x a\ b "c\d" 'e\f' "g\\h" \i""", {}),
    "the interpreter in a variable": ("PY=python3; exec $PY -u -m sglang.launch_server --model-path a/b", {}),
    "arguments that grow": ('ARGS="--tp 2"\nARGS="$ARGS --x 1"\nexec vllm serve a/b $ARGS', {}),
    "filled in by the kubelet": ('exec vllm serve a/b --tp $(TP) "$(TP)" \'$(TP)\'', {"TP": "4"}),
}  # fmt: skip
REFUSED: Mapping[str, Script] = {
    "`if`": ('if [ "$MODE" = big ]; then exec vllm serve a/big; else exec vllm serve a/small; fi', {}),
    "`)`": ('case "$GPU" in h200) T=8;; *) T=4;; esac; exec vllm serve a/b --tp $T', {"GPU": "h200"}),
    "`[`": ("[ -d /models/32b ] && exec vllm serve a/32b; exec vllm serve a/8b", {}),
    "`test`": ('test -n "$LORA" && ARGS=--enable-lora; exec vllm serve a/b ${ARGS:-}', {}),
    "only if a program before it succeeds": ("false && T=8; exec vllm serve a/b --tp ${T:-1}", {}),
    "two engines": ("false && exec vllm serve a/b\nexec vllm serve c/d", {}),
    "`set`": ("set -f; exec vllm serve a/b *", {}),
    "`$@`": ('set -- --tp 2; exec vllm serve a/b "$@"', {}),
    "`exit`": ("exit 0; exec vllm serve a/b", {}),
    "`export` with": ("export -n T; exec vllm serve a/b --tp $T", {"T": "2"}),
    "`${TP:=`": (': "${TP:=4}"; exec vllm serve a/b --tp $TP', {}),
    "`$((`": ("exec vllm serve a/b --tp $((2*2))", {}),
    "`${M%/`": ("exec vllm serve ${M%/}", {"M": "a/b/"}),
    "`${#X`": ("exec vllm serve a/b --tp ${#X}", {"X": "ab"}),
    "`${X:+`": ("exec vllm serve a/b ${X:+--x}", {"X": "1"}),
    "$EXTRA": ("exec vllm serve a/b $EXTRA", {}),
    "`$(`": ("exec vllm serve a/b --tp $(echo 2)", {}),
    "```": ("T=`echo 2`; exec vllm serve a/b --tp $T", {}),
    "`&`": ("vllm serve a/b --tp 2 & wait", {}),
    "`||`": ("vllm serve a/b || vllm serve c/d", {}),
    "`while`": ("while true; do vllm serve a/b; break; done", {}),
    "`(`": ("(cd / && exec vllm serve a/b)", {}),
    "`<<`": ("cat <<EOF >/dev/null\nvllm serve a/b\nEOF\nvllm serve c/d", {}),
    "`eval`": ('eval "vllm serve a/b $X"', {"X": "--tp 2"}),
    "`{`": ("exec vllm serve a/b {x,y}", {}),
    "`$`": ("exec vllm serve a/b $X$", {"X": "1 2"}),  # of which shells make different words
    "`~`": ("exec vllm serve ~/model", {}),
    "`*`": ("exec vllm serve a/b /*", {}),
    "in a pipe": ("export T=2 | cat; exec vllm serve a/b --tp ${T:-1}", {}),
    "`read`": ("echo 2 | read T; exec vllm serve a/b --tp ${T:-1}", {}),
    "`export`": ("A=1 export B; exec vllm serve a/b ${A:-2}", {}),
    "`IFS=`": ("IFS=,; exec vllm serve a/b $X", {"X": "1,2"}),
    "`exec` of a program": ("exec pip install x; vllm serve a/b", {}),
    "the same command sets": ("A=1 B=$A; exec vllm serve a/b $B", {}),
    "`xargs`": ("echo --tp 2 | xargs vllm serve a/b", {}),
    "unclosed quote": ("vllm serve 'a/b", {}),
}  # fmt: skip
"""What is named as the reason → a script that only a shell can follow."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    for name, does in STUBS.items():
        (folder / name).write_text(f"#!/bin/sh\n{does}\n")
        (folder / name).chmod(0o755)
    return folder


def read(script: str, env: Mapping[str, str], shell: str = "sh") -> Launch | None:
    """Of a container's `sh -c`."""
    variables: list[Any] = [{"name": name, "value": value} for name, value in env.items()]
    return launch({"name": "c", "command": [shell, "-c", script], "env": variables})


def run(script: str, env: Mapping[str, str], programs: Path, shell: str) -> tuple[list[str], dict[str, str]]:
    """The words after the program, and the environment, of the first engine that the shell starts; none if it starts
    none."""
    started = programs / "started"
    for file in programs.glob("started*"):
        file.unlink()
    filled_in = re.sub(
        r"\$\$|\$\((\w+)\)", lambda one: env.get(one[1], one[0]) if one[1] else "$", script
    )  # as the kubelet does
    path = f"{programs}:{os.environ['PATH']}"
    subprocess.run([shell, "-c", filled_in], env={**env, "PATH": path, "STARTED": str(started)}, capture_output=True)
    if not started.exists():
        return [], {}
    words = started.read_text().split("\0")[:-1]
    pairs = (one.partition("=") for one in (programs / "started.env").read_text().split("\0") if one)
    return words, {name: value for name, _, value in pairs}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("script", "env"), READ.values(), ids=READ)
def test_what_is_read_is_what_runs(script: str, env: Mapping[str, str], shell: str, programs: Path) -> None:
    found = read(script, env, shell)
    assert found is not None
    words, environment = run(script, env, programs, shell)
    assert words[-len(found.args) :] == list(found.args)
    assert words[: -len(found.args)] in (
        ["serve"],
        ["-m", "sglang.launch_server"],
        ["-u", "-m", "sglang.launch_server"],
    )
    assert {name: environment.get(name) for name in found.env} == found.env


@pytest.mark.parametrize(("script", "env"), REFUSED.values(), ids=REFUSED)
def test_what_only_a_shell_can_follow_is_refused(
    script: str, env: Mapping[str, str], request: pytest.FixtureRequest, says: Says
) -> None:
    with pytest.raises(UnansweredError) as refused:
        read(script, env)
    assert all(token in str(refused.value) for token in re.findall("`.+`", request.node.callspec.id))
    says(refused.value)


TEXT = st.text("ab1-=/:,.#@ $\"'\\`*?~{}[]&|;<>()!\n\t", max_size=6)
PLAIN = st.text("ab1-=/:,.#@%+!^", min_size=1, max_size=4)
VARIABLES = st.sampled_from(
    ("$A", "${A}", "$B", "${E}", "$E", "${U:-d e}", "${E:-f}", "${U:-'g  h'}", "$(A)", "$$", "$ ")
)
PIECES = st.one_of(
    PLAIN,
    VARIABLES,
    TEXT.filter(lambda text: "'" not in text).map("'{}'".format),
    TEXT.map(lambda text: '"' + "".join(f"\\{one}" if one in '"`$\\' else one for one in text) + '"'),
    st.one_of(TEXT, VARIABLES).map('"{}"'.format),
    st.sampled_from(("\\'", '\\"', "\\ ", "\\$", "\\\\", "\\\n", "*", "~", "{a,b}", "[a]", "\\a", "'\\'")),
)
WORDS = st.lists(PIECES, min_size=1, max_size=3).map("".join)
BLANKS = st.sampled_from((" ", "  ", "\t", " \\\n ", " # c\n", " 2>&1 ", " >/dev/null "))
STATEMENTS = st.one_of(
    WORDS.map("A={}".format),
    WORDS.map("export B={}".format),
    WORDS.map("echo {}".format),
    st.sampled_from(("set -e", "export A B", "true", "# c", "C=$A B=2", "A=x$A")),
)
ENGINES = st.builds(
    lambda before, words, blank, after: f"{before}vllm serve m{blank}{' '.join(words)}{after}",
    st.sampled_from(("", "exec ", "A=9 ", "env A=8 ")),
    st.lists(WORDS, max_size=4),
    BLANKS,
    st.sampled_from(("", "\n", " # c", " | tee /dev/null", "; echo x")),
)
SEPARATORS = st.sampled_from(("\n", "; ", " && ", ";\n", "\n\n"))


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(STATEMENTS, SEPARATORS).map("".join), max_size=3).map("".join), ENGINES)
def test_any_script_is_read_as_it_runs_or_refused(programs: Path, before: str, engine: str) -> None:
    script, env = before + engine, {"A": "1 2", "B": "x", "E": ""}
    try:
        found = read(script, env)
    except UnansweredError:
        return
    for shell in SHELLS:
        words, _ = run(script, env, programs, shell)
        assert words in ([], ["serve", *found.args] if found else []), (shell, script)  # a program before it may fail


def test_a_variable_that_only_the_pod_knows_is_a_reference() -> None:
    key = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    words = 'vllm serve a/b --api-key $KEY --x "${KEY:-none}" $(KEY)'
    found = launch({"name": "c", "command": ["sh", "-c", words], "env": [key]})
    assert found is not None
    assert found.args == ("a/b", "--api-key", "$(KEY)", "--x", "$(KEY)", "$(KEY)")


def test_a_default_does_not_count_where_a_configmap_may_have_the_variable() -> None:
    container = {"name": "c", "command": ["sh", "-c", "vllm serve a/b --tp ${TP:-2}"]}
    with pytest.raises(UnansweredError, match=r"\$TP"):
        launch({**container, "envFrom": [{"configMapRef": {"name": "m"}}]})
