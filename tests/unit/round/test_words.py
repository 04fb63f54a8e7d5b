"""Words of a server's command that a shell would do something with reach the engine as they are."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.injections import HARMLESS
from tests.unit.round.pod import told

STUB = (sys.executable, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))")


@pytest.mark.parametrize("before", ["--attention-backend", "--served-model-name", "x"])
def test_each_word_arrives_by_itself_and_does_nothing(tmp_path: Path, before: str) -> None:
    words = [word for one in HARMLESS for word in (before, one)]
    told(tmp_path).start((*STUB, *words))
    script = str(tmp_path / "in" / "arm" / "start")
    ran = subprocess.run(["sh", script], capture_output=True, text=True, check=True, cwd=tmp_path, timeout=60)
    assert json.loads(ran.stdout) == words
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]
