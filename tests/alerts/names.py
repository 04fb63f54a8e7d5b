"""The metrics that the alerts ask for, without those that every Python process has."""

import re
from pathlib import Path

import yaml

FILE = Path(__file__).parents[2] / "charts" / "paceline" / "files" / "alerts.yaml"
METRIC = {
    name
    for group in yaml.safe_load(FILE.read_text())["groups"]
    for rule in group["rules"]
    for name in re.findall(r"\b(?:paceline|process)_\w+", rule["expr"])
}
