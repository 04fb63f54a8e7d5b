"""Specs that ask for too much."""

from typing import Any

from tests.support.edits import example


def candidates(count: int) -> dict[str, Any]:
    manifest: dict[str, Any] = example()
    (one, *_) = manifest["spec"]["candidates"]
    manifest["spec"]["candidates"] = [{**one, "name": f"c{number}"} for number in range(count)]
    return manifest


def with_argument(argument: str) -> dict[str, Any]:
    manifest: dict[str, Any] = example()
    manifest["spec"]["engine"]["args"] = [argument]
    return manifest
