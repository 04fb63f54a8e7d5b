"""Rules about the server's keys."""

from collections.abc import Iterator

from paceline.engines.adapter import Refusal
from paceline.engines.keys import ADMIN_KEY, API_KEY
from paceline.engines.sglang.case import Case, Rule
from paceline.engines.sglang.flags import first_with


def _variables(case: Case) -> Iterator[Refusal]:
    for i, variable in enumerate(case.server.engine.env):
        if variable["name"] in (API_KEY, ADMIN_KEY):
            fields = "apiKeySecretRef and adminKeySecretRef"
            yield Refusal(path=f"engine.env[{i}].name", message=f"{variable['name']} is Paceline's; write {fields}")


def _admin(case: Case) -> Iterator[Refusal]:
    if case.server.engine.admin_key and "--admin-api-key" not in case.flags:
        message = f"{case.engine} has no admin key; {first_with('--admin-api-key')} has it, or remove it"
        yield Refusal(path="engine.adminKeySecretRef", message=message)


def _tokenizers(case: Case) -> Iterator[Refusal]:
    for one in case.shared if case.server.engine.api_key else ():
        if one.name == "--tokenizer-worker-num" and one.value not in ("", "1"):
            yield one.refused(f"{one.given.name}={one.value} does not go with apiKeySecretRef; remove one of them")


def _grpc(case: Case) -> Iterator[Refusal]:
    engine = case.server.engine
    for one in case.shared if engine.api_key or engine.admin_key else ():
        if one.name == "--grpc-port":
            yield one.refused(f"{one.given.name} would answer without a key; remove it, or the keys")


RULES = (
    Rule(id="key-variables", broken=_variables, reason="the command would carry it in place of the key", source="ours"),
    Rule(
        id="key-admin",
        broken=_admin,
        reason="the server exits 2: unrecognized arguments",
        source="the flag lists",
    ),
    Rule(
        id="key-tokenizers",
        broken=_tokenizers,
        reason="AssertionError: several tokenizer workers know no key",
        source="entrypoints/http_server.py:259",
    ),
    Rule(
        id="key-grpc",
        broken=_grpc,
        reason="the server ends: --grpc-port is incompatible with keys",
        source="fields/serving.py",
    ),
)
