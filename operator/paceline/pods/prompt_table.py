"""Reads rows of a table, parquet or csv, as entries of a file of prompts."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from paceline.pods.conversation import CONVERSATION_FORMATS, OF_A_REQUEST, PROMPT, TIMESTAMP, DatasetError

READERS: Mapping[str, str] = {
    ".parquet": "read_parquet(?)",
    ".csv": "read_csv(?, header = true, all_varchar = true)",
}
"""File name suffix → how DuckDB reads the file. Cells of csv are text; those with JSON are parsed."""
_COLUMNS = (*CONVERSATION_FORMATS, *OF_A_REQUEST, TIMESTAMP)
_ROWS = 256
"""Rows per batch: a packed table may be many times larger in memory."""
ALONE: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "memory_limit": "1GB",
    "threads": "2",
}
"""DuckDB must not download anything for a file of an unexpected kind."""


def conversation_columns(file: Path, largest: int) -> Iterator[dict[str, Any]]:
    """The columns that a conversation may have, row by row. Raises DatasetError with the cause, or if they exceed
    `largest` characters."""
    import duckdb

    source = READERS[file.suffix.lower()]
    try:
        with duckdb.connect(config=ALONE) as database:
            columns = database.execute(f"SELECT * FROM {source} LIMIT 0", [str(file)]).description or []
            names = [name for name, *_ in columns if name in _COLUMNS]
            if not set(names) & set(CONVERSATION_FORMATS):
                found = ", ".join(str(name) for name, *_ in columns)
                raise DatasetError(f"has no column {', '.join(CONVERSATION_FORMATS)}: its columns are {found:.300}")
            wanted = ", ".join(f'"{name}"' for name in names)
            table = database.execute(f"SELECT {wanted} FROM {source}", [str(file)])
            size = 0
            while some := table.fetchmany(_ROWS):
                for values in some:
                    row = {
                        name: _read(name, value) for name, value in zip(names, values, strict=True) if value is not None
                    }
                    size += len(json.dumps(row, default=str))
                    if size > largest:
                        raise DatasetError(f"has more than {largest >> 20} MiB of text: take a part of it")
                    yield row
    except duckdb.Error as error:
        raise DatasetError(f"is not a table that can be read: {str(error).splitlines()[0]:.300}") from error


def _read(name: str, value: Any) -> Any:
    """A cell; text that is a JSON list or object is parsed. A prompt may be a question about JSON, so it is parsed only
    as a list of messages."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return value
    try:
        said = json.loads(value)
    except (ValueError, RecursionError):
        return value
    messages = isinstance(said, list) and said and all(isinstance(one, dict) and "role" in one for one in said)
    return said if messages or name != PROMPT else value
