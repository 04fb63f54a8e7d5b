"""Rows of stage preflight: what only the models' files can tell. Run in tests/unit/preflight, with facts by name."""

from tests.wrong.edits import Row

PREFLIGHT: tuple[Row, ...] = ()
