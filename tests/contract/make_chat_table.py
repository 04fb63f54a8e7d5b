"""Writes the table of the emulator's hub: `python -m tests.contract.make_chat_table`.

Here and not in the emulator, which has no library that writes tables.
"""

import json
from pathlib import Path

import duckdb

from paceline_emulator.hub.prompts import chats

TO = Path(__file__).parents[2] / "paceline_emulator/data/chat.parquet"
ROWS = 'SELECT unnest(from_json(?, \'[[{"role": "VARCHAR", "content": "VARCHAR"}]]\')) AS messages'


def write(file: Path) -> None:
    """A row for each chat, in the one column `messages`."""
    with duckdb.connect() as database:
        database.execute(f"COPY ({ROWS}) TO '{file}' (FORMAT parquet, COMPRESSION zstd)", [json.dumps(chats())])


if __name__ == "__main__":
    write(TO)
    print(TO)
