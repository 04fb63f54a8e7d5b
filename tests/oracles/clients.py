"""Three clients, each a process that sends the same requests in a closed loop, and what each reports."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from paceline.core import Dataset, Workload
from paceline.engines import Speculation
from paceline.pods.round.client import Requests
from paceline.pods.round.load import COUNTED
from paceline.pods.round.report import point
from paceline_emulator.hub import tokenizer

BIN = Path(os.environ.get("ORACLES", "build/oracles")) / "bin"
MODEL, TOKENS = "stream", 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Output tokens per second of the whole time; means in seconds; `gap` between two pieces of an answer."""

    throughput: float
    ttft: float
    tpot: float
    gap: float
    cpu: float | None = None
    """Ours alone tells its share of a CPU, and its loop's lag."""
    lag: float | None = None


def texts(count: int) -> list[str]:
    return [f"What is the number that comes after {number}?" for number in range(count)]


def ours(url: str, concurrency: int, count: int, scratch: Path) -> Told:
    body = {"model": MODEL, "stream": True, "max_completion_tokens": TOKENS, **COUNTED}
    bodies = tuple({**body, "messages": [{"role": "user", "content": text}]} for text in texts(count))
    (scratch / "load").write_text(Requests(url=url, bodies=bodies, concurrency=concurrency).to_json())
    run([sys.executable, "-m", "paceline.pods.round.client", scratch / "load", scratch / "report"])
    report = json.loads((scratch / "report").read_text())
    workload = Workload(
        dataset=Dataset(name="x", source="builtin://x", requests=count, max_tokens=TOKENS), concurrency=1
    )
    found = point(workload, report, Speculation())
    assert found.errors == 0, report["errors"]
    assert found.output_throughput
    assert found.mean_ttft
    assert found.mean_tpot
    return Told(
        throughput=found.output_throughput,
        ttft=found.mean_ttft,
        tpot=found.mean_tpot,
        gap=fmean(gap for gaps in report["itls"] for gap in gaps),
        cpu=found.client_cpu,
        lag=found.client_lag,
    )


def sglangs(url: str, concurrency: int, count: int, scratch: Path) -> Told:
    answers = {"from": "gpt", "value": "An answer of some words that is never sent."}
    entries = [{"conversations": [{"from": "human", "value": text}, answers]} for text in texts(count)]
    (scratch / "prompts").write_text(json.dumps(entries))
    options = {
        "--backend": "sglang-oai-chat",
        "--base-url": url.partition("/v1/")[0],
        "--ready-check-timeout-sec": 0,
        "--model": MODEL,
        "--tokenizer": tokenizer_in(scratch),
        "--dataset-name": "sharegpt",
        "--dataset-path": scratch / "prompts",
        "--num-prompts": count,
        "--sharegpt-output-len": TOKENS,
        "--max-concurrency": concurrency,
        "--worker-threads": 1,
        "--warmup-requests": 0,
        "--output-file": scratch / "sglang",
        "--extra-request-body": json.dumps(COUNTED),
    }
    flags = ("--disable-ignore-eos", "--disable-retokenize", "--disable-tqdm")
    words = [word for option in options.items() for word in option]
    run([BIN / "python", Path(__file__).with_name("sglang_client.py"), *flags, *words])
    report = json.loads((scratch / "sglang").read_text().splitlines()[-1])
    assert report["completed"] == count
    ttft, tpot, gap = (report[f"mean_{name}_ms"] / 1000 for name in ("ttft", "tpot", "itl"))
    return Told(throughput=report["output_throughput"], ttft=ttft, tpot=tpot, gap=gap)


def aiperfs(url: str, concurrency: int, count: int, scratch: Path) -> Told:
    """Its inter-token latency is what others call time per output token; its gaps are between pieces."""
    (scratch / "turns.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts(count)))
    options = {
        "--url": url.partition("/v1/")[0],
        "--model": MODEL,
        "--endpoint-type": "chat",
        "--tokenizer": tokenizer_in(scratch),
        "--input-file": scratch / "turns.jsonl",
        "--custom-dataset-type": "single_turn",
        "--concurrency": concurrency,
        "--request-count": count,
        "--workers-max": 1,
        "--record-processors": 1,
        "--ui-type": "none",
        "--artifact-dir": scratch / "aiperf",
    }
    words = [word for option in options.items() for word in option]
    run([BIN / "aiperf", "profile", "--streaming", "--use-server-token-count", *words])
    (exported,) = (scratch / "aiperf").rglob("profile_export_aiperf.json")
    report = json.loads(exported.read_text())
    ttft, tpot, gap = (
        report[name]["avg"] / 1000 for name in ("time_to_first_token", "inter_token_latency", "inter_chunk_latency")
    )
    return Told(throughput=report["output_token_throughput"]["avg"], ttft=ttft, tpot=tpot, gap=gap)


def tokenizer_in(scratch: Path) -> Path:
    """One that others read, though the server counts all tokens."""
    folder = scratch / "tokenizer"
    folder.mkdir()
    for name, content in tokenizer.files().items():
        (folder / name).write_bytes(content)
    return folder


CLIENTS = {"Paceline": ours, "SGLang's": sglangs, "AIPerf": aiperfs}


def run(argv: Sequence[Any]) -> None:
    ended = subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, (ended.stdout + ended.stderr)[-4000:]
