"""Writes the emulator's catalogues from the captures: `python -m tests.contract.make_catalogues`.

The captures are of the real SGLang 0.5.23 server (CPU build of the wheel, tiny models), taken after a few requests.
metrics.json: every metric with its type, help, labels and buckets. server_info.json, model_info.json: the shape of
those answers. sglang_jax_server_info.json: the same of sglang-jax 0.1.0rc0.
"""

import json
import re
from pathlib import Path
from typing import Any

CAPTURES = Path(__file__).parent / "captures"
TO = Path(__file__).parents[2] / "paceline_emulator/data"

SAMPLE = re.compile(r"^(?P<name>[\w:]+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)$")
LABEL = re.compile(r'(\w+)="([^"]*)"')
FILLED_IN = ("model_name", "pid")
SUFFIXES = ("_bucket", "_sum", "_count")

# Only seen after an abort, so not in the captures (metrics_collector.py of the wheel).
ABORTED = {
    "name": "sglang:num_aborted_requests_total",
    "type": "counter",
    "help": "Number of requests aborted.",
    "onUse": True,
    "series": [{"labels": ["engine_type", "model_name"], "fixed": {}}],
}


def metrics() -> list[dict[str, Any]]:
    """Families in the order of the capture; those of a speculating server, and of one with adapters and answers that
    have a form, after the others."""
    families: dict[str, dict[str, Any]] = {}
    for arm in ("base", "eagle3", "lora"):
        for line in (CAPTURES / arm / "metrics.txt").read_text().splitlines():
            if line.startswith("# HELP "):
                _, _, name, text = line.split(" ", 3)
                families.setdefault(name, {"name": name, "type": "", "help": text, "onUse": False, "series": []})
            elif line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                families[name]["type"] = kind
            elif match := SAMPLE.match(line):
                _note(families[_family(match["name"], families)], match)
    return [*families.values(), ABORTED]


def _family(sample: str, families: dict[str, dict[str, Any]]) -> str:
    for suffix in SUFFIXES:
        if sample.endswith(suffix) and families.get(sample.removesuffix(suffix), {}).get("type") == "histogram":
            return sample.removesuffix(suffix)
    return sample


def _note(family: dict[str, Any], match: re.Match[str]) -> None:
    labels = dict(LABEL.findall(match["labels"] or ""))
    ours = "tp_rank" in labels or family["type"] == "gauge"
    family["onUse"] = not ours or family["name"].startswith(("sglang:http_", "sglang:lora_"))
    if match["name"].endswith("_bucket") and family["type"] == "histogram":
        bounds = family.setdefault("buckets", [])
        if labels["le"] not in bounds:
            bounds.append(labels["le"])
        return
    if match["name"].endswith("_sum") and family["type"] == "histogram":
        return
    series: dict[str, Any] = {
        "labels": sorted(labels),
        "fixed": {} if family["onUse"] else {key: labels[key] for key in sorted(labels) if key not in FILLED_IN},
    }
    if match["value"] == "NaN":
        series["value"] = "NaN"
    if series not in family["series"]:
        family["series"].append(series)


def server_info() -> dict[str, Any]:
    """`top` as captured; `state` adds what only an entry of internal_states has; `left_out_of_state` what it lacks."""
    captured = json.loads((CAPTURES / "base" / "server_info.json").read_text())
    state = captured.pop("internal_states")[0]
    return {
        "source": "GET /server_info of sglang 0.5.23",
        "top": captured,
        "state": {key: value for key, value in state.items() if key not in captured},
        "leftOutOfState": [key for key in captured if key not in state],
    }


def model_info() -> dict[str, Any]:
    return dict(json.loads((CAPTURES / "base" / "model_info.json").read_text()))


def jax_server_info() -> dict[str, Any]:
    """`arguments` by name; `state` as captured of an idle server."""
    captured = json.loads((CAPTURES / "sglang_jax" / "base" / "server_info.json").read_text())
    (state,) = captured.pop("internal_states")
    found_out = ("status", "version", "max_total_num_tokens", "max_req_input_len")
    return {
        "source": "GET /get_server_info of sglang-jax 0.1.0rc0",
        "arguments": [name for name in captured if name not in found_out],
        "state": state,
    }


def files() -> dict[Path, str]:
    """What belongs in the directory, by path."""
    lines = ",\n".join(json.dumps(family) for family in metrics())
    return {
        TO / "metrics.json": f"[\n{lines}\n]\n",
        TO / "server_info.json": json.dumps(server_info(), indent=1) + "\n",
        TO / "model_info.json": json.dumps(model_info(), indent=1) + "\n",
        TO / "sglang_jax_server_info.json": json.dumps(jax_server_info(), indent=1) + "\n",
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
        print(path)
