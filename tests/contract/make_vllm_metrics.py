"""Writes the emulated vLLM's catalogue of metrics from a capture: `python -m tests.contract.make_vllm_metrics`.

The page of a real vLLM 0.33.0 that speculates and has answered nothing yet: every family of `vllm:` with its help,
labels and buckets. When a series began stands in a gauge of its own, `…_created`, with the same labels; those are left
out, since they follow from their counter or histogram. What the web server and Python count is not emulated.
"""

import json
import re
from pathlib import Path
from typing import Any

CAPTURE = Path(__file__).parent / "captures" / "vllm" / "eagle3" / "metrics_start.txt"
TO = Path(__file__).parents[2] / "paceline_emulator/vllm/data/metrics.json"
SAMPLE = re.compile(r"^(?P<name>[\w:]+)\{(?P<labels>.*)\} (?P<value>\S+)$")
LABEL = re.compile(r'(\w+)="([^"]*)"')
NAMED_BY_THE_SERVER = ("engine", "model_name", "position")
SUFFIXES = re.compile(r"_(bucket|sum|count)$")


def families() -> list[dict[str, Any]]:
    """In the order of the page."""
    found: dict[str, dict[str, Any]] = {}
    helps: dict[str, str] = {}
    for line in CAPTURE.read_text().splitlines():
        if line.startswith("# HELP vllm:"):
            _, _, name, helps[name] = line.split(" ", 3)
        elif line.startswith("# TYPE vllm:") and not line.endswith("_created gauge"):
            _, _, name, kind = line.split(" ")
            found[name] = {"name": name, "type": kind, "help": helps[name], "labels": [], "series": []}
        elif (match := SAMPLE.match(line)) and (family := _of(match["name"], found)):
            _note(family, match)
    return list(found.values())


def _of(sample: str, found: dict[str, dict[str, Any]]) -> dict[str, Any] | None:
    return found.get(sample) or found.get(SUFFIXES.sub("", sample))


def _note(family: dict[str, Any], match: re.Match[str]) -> None:
    labels = dict(LABEL.findall(match["labels"]))
    bound = labels.pop("le", None)
    if bound is not None:
        family.setdefault("buckets", []).append(bound)
    family["labels"] = sorted(labels)
    fixed = {name: value for name, value in labels.items() if name not in NAMED_BY_THE_SERVER}
    if fixed not in family["series"]:
        family["series"].append(fixed)


def text() -> str:
    lines = ",\n".join(json.dumps(family) for family in families())
    return f"[\n{lines}\n]\n"


if __name__ == "__main__":
    TO.write_text(text())
    print(TO)
