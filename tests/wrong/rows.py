"""The table of wrong resources: each is refused at the earliest place that can know, with its field and the way out.

Rows of stage preflight are run where the models' files are (tests/unit/preflight), all others in
tests/api/test_refusals.py.
"""

from tests.support.edits import PROFILE, RUN, Row, Stage
from tests.wrong.cel import CEL, OF_A_PROFILE, OF_A_RUN, OF_A_TPU, OF_VLLM, THAT_NAMES_A_PROFILE
from tests.wrong.preflight import PREFLIGHT
from tests.wrong.rows_in_short import Told
from tests.wrong.schema import OF_A_PROFILES_SCHEMA, OF_A_RUNS_SCHEMA, SCHEMA
from tests.wrong.validate import VALIDATE, VALIDATE_ON_TPU, VALIDATE_ON_VLLM

TPU, VLLM = "qwen3-8b-tpu", "qwen3-coder-30b-vllm"


def _rows(stage: Stage, told: tuple[Told, ...], on: str = "qwen3-coder-next-upstream") -> tuple[Row, ...]:
    return tuple(Row(name=name, stage=stage, changes=changes, path=path, on=on) for name, changes, path in told)


ROWS = (
    *_rows(Stage.SCHEMA, SCHEMA),
    *_rows(Stage.SCHEMA, OF_A_RUNS_SCHEMA, RUN),
    *_rows(Stage.SCHEMA, OF_A_PROFILES_SCHEMA, PROFILE),
    *_rows(Stage.CEL, CEL),
    *_rows(Stage.CEL, OF_A_TPU, TPU),
    *_rows(Stage.CEL, OF_VLLM, VLLM),
    *_rows(Stage.CEL, OF_A_RUN, RUN),
    *_rows(Stage.CEL, OF_A_PROFILE, PROFILE),
    *_rows(Stage.CEL, THAT_NAMES_A_PROFILE, "benchmark-profile"),
    *_rows(Stage.VALIDATE, VALIDATE),
    *_rows(Stage.VALIDATE, VALIDATE_ON_TPU, TPU),
    *_rows(Stage.VALIDATE, VALIDATE_ON_VLLM, VLLM),
    *PREFLIGHT,
)


def of(*stages: Stage) -> list[Row]:
    return [row for row in ROWS if row.stage in stages]
