"""What the chart's values mean, written once: the comments of values.yaml become the descriptions of
values.schema.json and the table of the chart's README.

    dev/chart_docs.py           writes both
    dev/chart_docs.py --check   fails where they are not what it would write
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[1] / "charts" / "paceline"
BEGIN, END = "<!-- values -->\n", "<!-- end of values -->\n"
LINE = re.compile(r"(?P<indent> *)(?:# ?(?P<comment>.*)|(?P<key>\w+):.*)$")
LONGEST_DEFAULT = 40


def described(values: str) -> dict[str, str]:
    """Path of a value, such as `image.tag` → the comment that stands right above it."""
    found: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    comment: list[str] = []
    for text in values.splitlines():
        line = LINE.match(text)
        if line and line["key"]:
            path = [(indent, key) for indent, key in path if indent < len(line["indent"])]
            path.append((len(line["indent"]), line["key"]))
            if comment:
                found[".".join(key for _, key in path)] = " ".join(comment)
        comment = [*comment, line["comment"]] if line and line["comment"] else []
    return found


def values_of(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every value of the schema and its group, in order: path → its own part of the schema."""
    for name, part in schema["properties"].items():
        here = f"{path}.{name}" if path else name
        yield here, part
        if "properties" in part:
            yield from values_of(part, here)


def at(values: Any, path: str) -> Any:
    for key in path.split("."):
        values = values[key]
    return values


def with_descriptions(schema: dict[str, Any], said: Mapping[str, str]) -> dict[str, Any]:
    """A description stands first. Every value has one, and every one is of a value; groups need none."""
    parts = {path: part for path, part in values_of(schema) if path != "global"}
    if unknown := said.keys() - parts.keys():
        raise SystemExit(f"values.yaml describes what is not in values.schema.json: {', '.join(sorted(unknown))}")
    if silent := {path for path, part in parts.items() if "properties" not in part} - said.keys():
        raise SystemExit(f"no comment stands above these in values.yaml: {', '.join(sorted(silent))}")
    for path, text in said.items():
        rest = {key: value for key, value in parts[path].items() if key != "description"}
        parts[path].clear()
        parts[path].update({"description": text, **rest})
    return schema


def table(schema: Mapping[str, Any], values: Mapping[str, Any]) -> Iterator[str]:
    yield "| value | default | |"
    yield "|---|---|---|"
    for path, part in values_of(schema):
        if path == "global" or ("properties" in part and "description" not in part):
            continue
        default = "" if "properties" in part else f"`{shown(at(values, path))}`"
        yield f"| `{path}` | {default} | {part.get('description', '').replace('|', chr(92) + '|')} |"


def shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= LONGEST_DEFAULT else "see values.yaml"


def written(chart: Path) -> dict[Path, str]:
    """File → what should be in it."""
    text = (chart / "values.yaml").read_text()
    values, readme = chart / "values.schema.json", chart / "README.md"
    schema = with_descriptions(json.loads(values.read_text()), described(text))
    before, _, rest = readme.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    rows = "\n".join(table(schema, yaml.safe_load(text)))
    return {values: json.dumps(schema, indent=2) + "\n", readme: f"{before}{BEGIN}\n{rows}\n\n{END}{after}"}


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    chart = next((Path(one) for one in arguments if not one.startswith("-")), CHART)
    stale = {file: text for file, text in written(chart).items() if file.read_text() != text}
    for file, text in stale.items():
        if check:
            print(f"{file.name} is not what values.yaml says: run `make generate`")
        else:
            file.write_text(text)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
