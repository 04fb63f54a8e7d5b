"""Commands that the documents name: in code blocks, whole lines; in the text, `paceline …` in code spans."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "AGENTS.md", *sorted((ROOT / "docs").glob("*.md")))
PROGRAM = re.compile(
    r"(?:make|kubectl|helm|docker|buildah|cosign|paceline|pip|curl|export|git|time|ls|nsenter|ctr|for|crictl|uv"
    r"|\.venv/bin/\S+|dev/\S+|[a-z]+=\$\(\S+) ?"
)
"""What a line begins with that is a command."""
COMMENT = re.compile(r"\s+# .*$|\s+#$")
FENCE = re.compile(r"^\s*(```+)(\S*)")
SPAN = re.compile(r"`((?:kubectl )?paceline [a-z][^`]*)`")


def blocks(text: str) -> Iterator[str]:
    """Code blocks, fenced and indented, each without its margin; toctrees are none."""
    inside: list[str] = []
    fenced, skipped, before = "", False, ""
    for line in [*text.splitlines(), "end"]:
        fence = FENCE.match(line)
        if fenced:
            if fence and fence[1] == fenced:
                if not skipped:
                    yield "\n".join(inside)
                inside, fenced = [], ""
            else:
                inside.append(line)
        elif fence:
            fenced, skipped, inside = fence[1], fence[2].startswith("{"), []
        elif line.startswith("    ") and (inside or not before.strip()):
            inside.append(line[4:])
        elif inside and not line.strip():
            inside.append("")
        elif inside:
            yield "\n".join(inside)
            inside = []
        before = line


def commands(page: Path) -> Iterator[str]:
    """Without comments; a line that goes on is one, and so is a loop."""
    for block in blocks(page.read_text()):
        joined = re.sub(r"\\\n\s*", "", block)
        joined = re.sub(r"(?m)^(for .*; do)\n((?:.*\n)*?)(done)$", lambda m: f"{m[1]} {m[2].strip()}; {m[3]}", joined)
        for line in joined.splitlines():
            if PROGRAM.match(line):
                yield COMMENT.sub("", line).strip()


def spans(page: Path) -> Iterator[str]:
    """Where nothing is left out by an ellipsis; up to a pipe, and on one line."""
    for found in SPAN.findall(page.read_text()):
        if "…" not in found:
            yield " ".join(found.split()).partition(" | ")[0]
