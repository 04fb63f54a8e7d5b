"""Writes which words the emulated vLLM takes for some options: `python -m tests.contract.make_vllm_words`.

A real vLLM 0.33.0 lists them where it refuses a word (captures/vllm/wrong_values.jsonl).
"""

import ast
import json
import re
from pathlib import Path

CAPTURE = Path(__file__).parent / "captures" / "vllm" / "wrong_values.jsonl"
TO = Path(__file__).parents[2] / "paceline_emulator/vllm/data/words.json"
LISTS = {
    "--kv-cache-dtype": r"Valid values are: (\[.*?\])",
    "--quantization": r"Must be one of (\[.*?\])",
    "--attention-backend": r"Valid options are: (.*)",
    "--reasoning-parser": r"Available parsers: ([^\"]*)",
    "--tool-call-parser": r"chose from \{ (.*) \}",
}


def words() -> dict[str, list[str]]:
    found = {}
    for row in map(json.loads, CAPTURE.read_text().splitlines()):
        option = next((option for option in LISTS if option in row["case"]), None)
        if option and (listed := re.search(LISTS[option], row["tail"])):
            text = listed[1]
            names = ast.literal_eval(text) if text.startswith("[") else re.split(", ?", text)
            found[option.removeprefix("--").replace("-", "_")] = names
    return found


def text() -> str:
    return json.dumps(words(), indent=1) + "\n"


if __name__ == "__main__":
    TO.write_text(text())
