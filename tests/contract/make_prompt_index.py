"""Writes the emulator's index of the built-in prompts: `python -m tests.contract.make_prompt_index`.

Here and not in the emulator, which imports nothing else of Paceline.
"""

import json
from pathlib import Path

from paceline.pods import datasets
from paceline_emulator.prompts import prompt_hash

TO = Path(__file__).parents[2] / "paceline_emulator/data/prompts.json"


def text() -> str:
    """The file's content: dataset → prompt hashes."""
    return (
        json.dumps({name: [prompt_hash(prompt) for prompt in datasets.load_dataset(name)] for name in datasets.NAMES})
        + "\n"
    )


if __name__ == "__main__":
    TO.write_text(text())
    print(TO)
