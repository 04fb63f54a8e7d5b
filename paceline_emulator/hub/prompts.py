"""The files of the one dataset: prompts written for this project, in three of the forms that a round reads.

Every task with every subject, so that no two are alike. They are in none of the built-in sets: the emulated server
knows nothing of them, and answers as it does to any text.
"""

import json
from importlib import resources
from itertools import product

SUBJECTS = (
    "a ring buffer for log lines",
    "a cache that forgets the entry used least",
    "a parser of dates as people write them",
    "a queue on which jobs have priorities",
    "a tree of the files in a directory",
    "a meter of requests for every customer",
    "a table of train connections",
    "an index of the words in a book",
    "a calendar with events that repeat",
    "a ledger that is only ever added to",
    "a lock that several processes share",
    "a checker of brackets in formulas",
)
TASKS = (
    "Write {} in Python, with a short test of every edge case.",
    "Which data structure fits {}? Compare two by the cost of each operation.",
    "Somebody's version of {} is slow at a million entries. Say what to measure first, and why.",
    "Review the idea of {} for errors that only show under load.",
)
QUESTIONS = (
    "Explain {} to somebody who has never programmed.",
    "Name three things that go wrong with {} in practice, and a remedy for each.",
)
TEACHER = "You teach people who know no words of computer science. Be brief."
PLACEHOLDER = "This answer stands in for a real one; it is not read."


def files() -> dict[str, bytes]:
    """By path: `code.jsonl` has OpenAI messages, `data/chat.json` ShareGPT conversations, `data/chat.parquet` a chat in
    each row."""
    code = [{"messages": [{"role": "user", "content": text}]} for text in _filled(TASKS)]
    chat = [
        {
            "id": f"chat-{number}",
            "conversations": [{"from": "human", "value": text}, {"from": "gpt", "value": PLACEHOLDER}],
        }
        for number, text in enumerate(_filled(QUESTIONS))
    ]
    return {
        "README.md": b"# paceline-test/prompts, generated\n\nPrompts and short chats, for Paceline's demo and tests.\n",
        "code.jsonl": "".join(json.dumps(entry) + "\n" for entry in code).encode(),
        "data/chat.json": (json.dumps(chat, indent=1) + "\n").encode(),
        "data/chat.parquet": (resources.files("paceline_emulator") / "data" / "chat.parquet").read_bytes(),
    }


def chats() -> list[list[dict[str, str]]]:
    """Messages of two turns under a system prompt, a chat for every subject."""
    return [
        [
            {"role": "system", "content": TEACHER},
            {"role": "user", "content": QUESTIONS[0].format(subject)},
            {"role": "assistant", "content": PLACEHOLDER},
            {"role": "user", "content": f"And what would you do without {subject}?"},
        ]
        for subject in SUBJECTS
    ]


def _filled(tasks: tuple[str, ...]) -> list[str]:
    return [task.format(subject) for task, subject in product(tasks, SUBJECTS)]
