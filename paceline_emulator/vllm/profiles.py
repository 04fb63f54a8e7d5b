"""How fast a target decodes on vLLM: `data/profiles`, or the generic profile of the emulated SGLang for the rest."""

import json
import sys
from importlib.resources import files
from pathlib import Path

from paceline_emulator import profile
from paceline_emulator.models import Model, load
from paceline_emulator.profile import Profile


def for_target(target: Model, speed: float = 1.0) -> Profile:
    """`speed` times the profile whose facts are all in the target's configuration, else the generic one."""
    facts = {**target.text, "architectures": target.architectures}
    for entry in sorted((files(__package__) / "data" / "profiles").iterdir(), key=lambda entry: entry.name):
        found = json.loads(entry.read_text())
        if all(facts.get(key) == value for key, value in found["target"].items()):
            return profile.read(found).times(speed)
    return profile.generic().times(speed)


if __name__ == "__main__":  # as `python -m paceline_emulator.profile DIR`
    print(for_target(load(sys.argv[1], None, cache=Path(), offline=True)).name)
