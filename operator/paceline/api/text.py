"""Manifests as text: YAML as kubectl reads it, of which nobody's file can stop a command."""

import re
from collections.abc import Iterator
from typing import Any

import yaml

_DEEPEST = 100
MOST_ALIASED = 100_000
"""Values that the aliases of a document may stand for. Nine lines of ten aliases each stand for a billion."""


class Loader(yaml.CSafeLoader):
    """No dates, `y` and `n` are truth values as to kubectl, and a key that stands twice is an error."""

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


Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^[yYnN]$"), list("yYnN"))


def of_yaml(text: str) -> list[Any]:
    """The documents of a text. Raises yaml.YAMLError, and ValueError for what is nested too deep or swells."""
    _refuse(text)
    return list(yaml.load_all(text, Loader))


def _refuse(text: str) -> None:
    """Before anything is built: the parser written in C would end the whole process at what is deep, and what goes
    through a document meets each alias as often as it stands there."""
    aliased = 0
    sizes: dict[str, int] = {}
    """Anchor → the values that it stands for."""
    above: list[tuple[str | None, int]] = []
    """Of each open list or map: its anchor, and the values before it."""
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
    """Those of a List, as `kubectl get -o yaml` prints it."""
    if isinstance(document, dict) and document.get("kind") == "List" and isinstance(document.get("items"), list):
        return list(document["items"])
    return [document]


def documents(text: str) -> Iterator[dict[str, Any]]:
    """All objects, those of a List too. Raises as `of_yaml` does."""
    for document in of_yaml(text):
        yield from (one for one in items(document) if isinstance(one, dict))


def nodes(text: str) -> Iterator[yaml.Node]:
    """Where each object of `documents` stands, with its fields, in the same order. For texts that `of_yaml` takes."""
    for document in yaml.compose_all(text, Loader):
        items = _below(document, "items") if _value(_below(document, "kind")) == "List" else None
        if isinstance(items, yaml.SequenceNode):
            yield from (one for one in items.value if isinstance(one, yaml.MappingNode))
        elif isinstance(document, yaml.MappingNode):
            yield document


def field_place(node: yaml.Node, path: str) -> yaml.Mark:
    """Of the field at a path such as `spec.pools[0].name`; of what it would be in where it is not there."""
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
