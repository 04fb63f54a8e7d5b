"""Manifests are plain JSON and copied at every touch: marshal does it ten times as fast as copy.deepcopy.

Importing this makes the API in memory copy that way; without it these tests would take minutes.
"""

import marshal
from types import SimpleNamespace
from typing import Any

from tests.support.memory import api, cluster, fields


def _copied(value: Any) -> Any:
    return marshal.loads(marshal.dumps(value))


for module in (api, cluster, fields):
    module.copy = SimpleNamespace(deepcopy=_copied)
