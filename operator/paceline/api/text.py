"""Manifests as text: reads YAML as kubectl does, within bounds, so that no file can make a command hang or crash."""

import re
from collections.abc import Iterator
from typing import Any

import yaml

_DEEPEST = 100
MOST_ALIASED = 100_000
"""Maximum number of values that the aliases of a document stand for. Nine lines of ten aliases each stand for a
billion."""


class Loader(yaml.CSafeLoader):
    """Reads no dates; reads `y` and `n` as truth values, like kubectl; refuses a map that has a key twice."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }

    bool_values = {**yaml.CSafeLoader.bool_values, "y": True, "n": False}  # noqa: RUF012

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set[str]()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(None, None, f"{key.value} stands twice", node.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


AS_NUMBER: tuple[str, re.Pattern[str], list[str]] = (
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$"),
    list("-+.0123456789"),
)
"""What kubectl reads as a number and Python's YAML does not, such as 1e234567 and 08912345: digests look so."""


class Dumper(yaml.CSafeDumper):
    """Quotes texts that kubectl would read as numbers."""


Dumper.add_implicit_resolver(*AS_NUMBER)
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^[yYnN]$"), list("yYnN"))


def of_yaml(text: str) -> list[Any]:
    """The documents of a text. Raises yaml.YAMLError, and ValueError if they are nested too deep or their aliases stand
    for too many values."""
    _refuse(text)
    return list(yaml.load_all(text, Loader))


def _refuse(text: str) -> None:
    """Refuse such a text before any document is built: deep nesting would crash the parser, which is written in C, and
    code that walks a document visits the values of an alias at each of its uses."""
    aliased = 0
    sizes: dict[str, int] = {}
    """Anchor → number of values that it stands for."""
    above: list[tuple[str | None, int]] = []
    """For each open list or map: its anchor, and the number of values before it."""
    count = 0
    for event in yaml.parse(text, Loader):
        if isinstance(event, yaml.DocumentStartEvent):
            sizes.clear()
        elif isinstance(event, yaml.CollectionStartEvent):
            above.append((event.anchor, count))
            count += 1
            if len(above) > _DEEPEST:
                raise ValueError(f"is nested deeper than {_DEEPEST}")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = above.pop()
            if anchor is not None:
                sizes[anchor] = count - before
        elif isinstance(event, yaml.ScalarEvent):
            count += 1
            if event.anchor is not None:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor in {anchor for anchor, _ in above}:
                raise ValueError(f"*{event.anchor} contains itself")
            size = sizes.get(event.anchor or "", 0)
            count += size
            aliased += size
            if aliased > MOST_ALIASED:
                raise ValueError(f"its aliases stand for more than {MOST_ALIASED} values: write them out")


def items(document: Any) -> list[Any]:
    """The objects of a List, as `kubectl get -o yaml` prints it; any other document as it is."""
    if isinstance(document, dict) and document.get("kind") == "List" and isinstance(document.get("items"), list):
        return list(document["items"])
    return [document]


def documents(text: str) -> Iterator[dict[str, Any]]:
    """All objects, including those in a List. Raises what `of_yaml` raises."""
    for document in of_yaml(text):
        yield from (one for one in items(document) if isinstance(one, dict))


def nodes(text: str) -> Iterator[yaml.Node]:
    """The YAML node of each object of `documents`, in the same order, from which `field_place` finds lines. The text
    must be one that `of_yaml` accepts."""
    for document in yaml.compose_all(text, Loader):
        items = _below(document, "items") if _value(_below(document, "kind")) == "List" else None
        if isinstance(items, yaml.SequenceNode):
            yield from (one for one in items.value if isinstance(one, yaml.MappingNode))
        elif isinstance(document, yaml.MappingNode):
            yield document


def field_place(node: yaml.Node, path: str) -> yaml.Mark:
    """The place in the text of the field at a path such as `spec.pools[0].name`; if it is missing, the place of the
    nearest existing field above it."""
    mark = node.start_mark
    for name, index in re.findall(r"([^.\[\]]+)|\[([0-9]+)\]", path):
        key = next((key for key, _ in node.value if key.value == name), None) if _is_map(node) and name else None
        below = _below(node, name or int(index))
        if below is None:
            return mark
        node, mark = below, key.start_mark if key else below.start_mark
    return mark


def _is_map(node: yaml.Node) -> bool:
    return isinstance(node, yaml.MappingNode)


def _below(node: yaml.Node | None, step: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step]  # type: ignore[no-any-return]
    return None


def _value(node: yaml.Node | None) -> Any:
    return node.value if node else None
