"""Files that servers' arguments name (`Adapter.files`), in their pods: each is the value of an annotation of the pod,
which a volume shows as a file.

So its text is a part of the pod's template: a ControllerRevision keeps it with the arguments, and no further object
must be made, found or cleaned up.
"""

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from paceline.core import Arm, Server, server_of
from paceline.core.manifest import Manifest
from paceline.core.names import FILES
from paceline.engines import ENGINES
from paceline.engines.pod_template import WRITTEN

Files = Mapping[str, str]
"""Path in a server's container → text."""


def files_of(server: Server, arms: Iterable[Arm]) -> Files:
    """Each file once, even if two arms name it."""
    by_arm = (ENGINES[server_of(server, arm).engine.type].files(arm) for arm in arms)
    return {path: text for files in by_arm for path, text in files.items()}


def file_annotations(files: Files) -> Manifest:
    """The part of a pod's metadata; empty without files."""
    return {"annotations": {_annotation(path): text for path, text in files.items()}} if files else {}


def file_volumes(files: Files) -> list[Manifest]:
    """At most one volume, with the fields that an API server would add."""
    items = [
        {
            "path": _name(path),
            "fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.annotations['{_annotation(path)}']"},
        }
        for path in files
    ]
    return [{"name": WRITTEN, "downwardAPI": {"items": items}}] if items else []


def file_mounts(files: Files) -> list[Manifest]:
    return [{"name": WRITTEN, "mountPath": FILES, "readOnly": True}] if files else []


def files_in(pod: Mapping[str, Any]) -> Files:
    """The files of a pod with this template."""
    texts: Mapping[str, str] = pod["metadata"].get("annotations") or {}
    shown = (volume["downwardAPI"]["items"] for volume in pod["spec"]["volumes"] if volume["name"] == WRITTEN)
    return {path: texts[_annotation(path)] for items in shown for path in (f"{FILES}/{one['path']}" for one in items)}


def _annotation(path: str) -> str:
    """A key that overlays must not use."""
    return f"paceline.dev/{_name(path)}"


def _name(path: str) -> str:
    return PurePosixPath(path).name
