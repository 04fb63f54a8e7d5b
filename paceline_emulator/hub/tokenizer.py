"""A byte-level BPE tokenizer in the format of the `tokenizers` library, trained here on a page of text."""

import json
import re
from collections import Counter
from functools import cache
from itertools import pairwise

VOCABULARY = 512
END_OF_TEXT, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIAL = (END_OF_TEXT, START, END)

# ChatML, as the Qwen family writes it.
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)

# ASCII form of the split that the ByteLevel pre-tokenizer makes.
_WORD = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+")

TEXT = '''
def count_words(text: str) -> dict[str, int]:
    """Return how many times each word occurs in the given text, in lower case."""
    counts: dict[str, int] = {}
    for word in text.lower().split():
        counts[word] = counts.get(word, 0) + 1
    return counts

class Queue:
    def __init__(self, size: int) -> None:
        self.items = [None] * size
        self.first = 0
        self.length = 0

    def put(self, item: object) -> None:
        if self.length == len(self.items):
            raise ValueError("the queue is full")
        self.items[(self.first + self.length) % len(self.items)] = item
        self.length += 1

    def get(self) -> object:
        if self.length == 0:
            raise IndexError("the queue is empty")
        item = self.items[self.first]
        self.first = (self.first + 1) % len(self.items)
        self.length -= 1
        return item

Please write a function that takes a list of numbers and returns the sum of those that are even. Explain what the
function does, how it is tested, and what happens when the list is empty. If there is an error in the input, the
function should return an error that names the line and the reason. I would like you to think about the time it takes
and to say which other way there would be to do the same thing. The test should show that the result is the same for
the old code and for the new one. When the test fails, find the commit that changed the file, read the message of the
commit, and tell me what to change so that it works again. Then run all of the tests and write down the output.
First list the files in the directory, then print the lines that contain the word error, and count them for each day.
Can you tell a short story about a small boat and the people on it? It was late in the evening, and the wind came from
the north. They had been on the water since the morning, and none of them could see the land any more.
for i in range(len(values)):
    if values[i] is not None and values[i] > 0:
        print(f"value {i}: {values[i]}")
'''


@cache
def files() -> dict[str, bytes]:
    """tokenizer.json and tokenizer_config.json."""
    merges = _train(VOCABULARY - 256 - len(SPECIAL))
    tokens = [*_alphabet().values(), *(left + right for left, right in merges)]
    added = [
        {
            "id": len(tokens) + number,
            "content": content,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for number, content in enumerate(SPECIAL)
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": [f"{left} {right}" for left, right in merges],
        },
    }
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": END_OF_TEXT,
        "eos_token": END,
        "pad_token": END_OF_TEXT,
        "model_max_length": 262144,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }
    return {
        "tokenizer.json": json.dumps(tokenizer, ensure_ascii=False, indent=1).encode(),
        "tokenizer_config.json": json.dumps(config, indent=1).encode(),
    }


def ids() -> dict[str, int]:
    """The special tokens' ids: the last of the vocabulary."""
    return {token: VOCABULARY - len(SPECIAL) + number for number, token in enumerate(SPECIAL)}


def _alphabet() -> dict[int, str]:
    """Byte → printable character, as every byte-level BPE since GPT-2 writes it."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = (byte for byte in range(256) if byte not in printable)
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + n) for n, byte in enumerate(rest)}


def _train(merges: int) -> list[tuple[str, str]]:
    """Merge the most frequent neighbours, ties in alphabetical order, until there are `merges` new tokens."""
    letters = _alphabet()
    words = Counter(tuple(letters[byte] for byte in word.encode()) for word in _WORD.findall(TEXT))
    made: list[tuple[str, str]] = []
    while len(made) < merges:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, times in words.items():
            for pair in pairwise(word):
                pairs[pair] += times
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        made.append(best)
        merged: Counter[tuple[str, ...]] = Counter()
        for word, times in words.items():
            merged[_merge(word, best)] += times
        words = merged
    return made


def _merge(word: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    out: list[str] = []
    for token in word:
        if out and (out[-1], token) == pair:
            out[-1] += token
        else:
            out.append(token)
    return tuple(out)
