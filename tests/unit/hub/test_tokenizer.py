"""The generated tokenizer is consistent in itself; that the `tokenizers` library loads it was tried by hand."""

import json

from jinja2 import Environment

from paceline_emulator.hub.tokenizer import VOCABULARY, files, ids

TOKENIZER = json.loads(files()["tokenizer.json"])
CONFIG = json.loads(files()["tokenizer_config.json"])


def test_ids_are_dense_and_every_merge_makes_a_token() -> None:
    vocabulary = TOKENIZER["model"]["vocab"]
    special = {token["content"]: token["id"] for token in TOKENIZER["added_tokens"]}
    assert special == ids()
    assert sorted([*vocabulary.values(), *special.values()]) == list(range(VOCABULARY))
    for merge in TOKENIZER["model"]["merges"]:
        left, right = merge.split(" ")
        assert {left, right, left + right} <= vocabulary.keys()


def test_common_words_became_tokens() -> None:
    assert {"Ġthe", "Ġself", "Ġand", "return"} & TOKENIZER["model"]["vocab"].keys() >= {"Ġthe", "Ġself", "Ġand"}


def test_the_chat_template_writes_chatml() -> None:
    template = Environment().from_string(CONFIG["chat_template"])
    text = template.render(messages=[{"role": "user", "content": "Hello"}], add_generation_prompt=True)
    assert text == "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
