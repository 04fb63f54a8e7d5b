"""Words that would be a path, an option or a command somewhere else: where each is put, and what must become of it."""

from collections.abc import Iterator, Mapping
from typing import Any

COMMANDS = ("$(id)", "`id`", "a;id", "a|id", "a&&id", "a b", "a\nb", "a\tb", "'a", '"a', "a$HOME")
"""What a shell would do something with."""
CLIMBS = (
    "hf://../../etc", "hf://a/..", "hf://a/b/..", "hf://a/b/../../x", "hf:///etc/passwd", "hf://a//b", "hf://a/.git",
    "hf://../b", "hf://a/b/c", "hf://a%2f..%2fb/c", "hf://a/b?x=y", "hf://a/b#c", "hf://user@evil.example/b",
    "hf://a\\b/c", "hf://\uff41/b", "hf://a/b\n", "HF://a/b", "file:///etc/passwd", "http://evil.example/a/b", "/etc",
    "pvc://models/..", "pvc://models/../../etc", "pvc://models/a/../b", "pvc://models//etc", "pvc:///etc",
    "oci://a/b", "oci://a/b:v1", f"oci://a/../b@sha256:{'0' * 64}", f"oci://a/b@sha256:{'0' * 64}/..",
    f"oci://a/b@sha256:{'0' * 63}", f"oci://a/b@sha256:{'0' * 64}\n", f"oci://user@a/b@sha256:{'0' * 64}",
    f"oci://a/-b@sha256:{'0' * 64}", "pvc://../x/y", "pvc://models/.hidden",
    "s3://models/../../etc", "gs://models//etc", "s3://../x", "gs://-x/y", "s3://models", "s3://user:key@models/x",
    "pvc://models/a/.", "pvc://models/a\\..\\b", "pvc://models/a\n",
)  # fmt: skip
OPTIONS = ("-x", "--upload-pack=x", "-", "--", "--trust-remote-code")
NAMES = (*COMMANDS, *OPTIONS, "..", "../a", "a/../b", "/a", "A", "")
REFUSED: Mapping[str, tuple[str, ...]] = {
    "spec.target.source": (*CLIMBS, *(f"hf://a/{word}" for word in (*COMMANDS, *OPTIONS))),
    "spec.draft.source": (*CLIMBS, *(f"pvc://models/{word}" for word in (*COMMANDS, *OPTIONS))),
    "spec.target.revision": (*COMMANDS, *OPTIONS, "../../x", "/x", ".x", "a/../x", "a/..", "refs/pr/../../../x"),
    "spec.target.servedName": (*COMMANDS[5:8], "$(PACELINE_API_KEY)", "a:b"),
    "spec.pools.0.name": NAMES,
    "spec.candidates.0.name": NAMES,
    "spec.cache.claim.name": NAMES,
    "spec.engine.apiKeySecretRef": NAMES,
    "spec.engine.image": ("-x", "--privileged", "a b", "a\nb", "", "/a"),
    "spec.engine.version": (*COMMANDS, "-1.0", "1", "../1.0"),
    "spec.engine.env.0.name": (*COMMANDS, "$(PATH)", "a=b", ""),
    "spec.accelerator.product": (*COMMANDS, "-x", "a/b", ".."),
    "spec.accelerator.resourceName": (*COMMANDS, "-x"),
}
"""A field → words that the API server refuses there, by the CRD."""
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "SGLang": (
        "--trust-remote-code", "--trust-remote", "--tru", "--model-path=/etc", "--model=/x", "--model-p=/x",
        "--revision=x", "--served-model-name=x", "--config=/x.yaml", "--conf=/x", "--host=::", "--port=1",
        "--api-key=x", "--api-k=x", "--admin-api-key=x", "--download-dir=/", "--tp-size=8", "--nnodes=2",
        "--dist-init-addr=evil:1", "--random-seed=1", "--speculative-algorithm=NGRAM",
        "--speculative-draft-model-path=/x", "stray", "; id", "--attention-backend=$(PACELINE_API_KEY)",
        "--no-such-flag=1", "--attention-backend=triton; id",
    ),
    "vLLM": (
        "--trust-remote-code", "--trust_remote_code", "--trust-remote", "--model=/x", "--revision=x",
        "--config=/x.yaml", "--host=::", "--port=1", "--uds=/x", "--api-key=x", "--api_key=x", "--hf-token=x",
        "--download-dir=/",
        "--nnodes=2", "--master-addr=evil", "--headless", "--speculative-config={}", "--speculative_config={}",
        "--spec={}", "--disable-log-stats", "--root-path=/x", "stray", "; id", "--dtype=$(PACELINE_API_KEY)",
        "--no-such-flag=1",
    ),
}  # fmt: skip
"""An engine → arguments that the desk and the operator refuse."""
HARMLESS = (
    *COMMANDS, *OPTIONS, "$(PACELINE_API_KEY)", "${PATH}", "*", "~", "\\", "a\\\nb", "$'\\x41'", "!x", "<(id)", ">/x",
    "{a,b}", "\u202e", "é", "#a", "a=b", "''", "$$", "'; exec id; '", '"; exec id; "',
)  # fmt: skip
"""Words that reach a server's command as they are, which a shell starts."""


def refused() -> Iterator[tuple[str, Any]]:
    for path, words in REFUSED.items():
        for word in words:
            yield path, ({"name": word, "key": "k"} if path.endswith("Ref") else word)
