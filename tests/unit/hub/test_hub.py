"""The local hub, asked by plain HTTP; tests/unit/fetch asks it by the real client."""

import hashlib
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer

from paceline.core import Source
from paceline.pods.prompt_file import read_prompts
from paceline.preflight.weights import lacking
from paceline_emulator.hub import application, generated, prompts
from paceline_emulator.hub.models import GATED_TOKEN
from paceline_emulator.hub.published import HEADS

GENERATED = generated()
EXAMPLES = Path(__file__).parents[3] / "examples"
TARGET = "Qwen/Qwen3-Coder-Next"
SHARD = "model-00001-of-00002.safetensors"


@pytest.fixture
async def client() -> AsyncIterator[TestClient]:
    async with TestClient(TestServer(application(GENERATED))) as client:
        yield client


def test_every_process_makes_the_same_commits() -> None:
    once, again = generated(), generated()
    assert once == again
    assert len({repository.history[0].commit for repository in once.values()}) == len(once)


async def test_a_model_is_described(client: TestClient) -> None:
    answer = await (await client.get(f"/api/models/{TARGET}")).json()
    assert len(answer["sha"]) == 40
    assert {"rfilename": "config.json"} in answer["siblings"]
    by_commit = await (await client.get(f"/api/models/{TARGET}/revision/{answer['sha']}")).json()
    assert by_commit == answer


async def test_a_dataset_is_described_and_its_files_are_there(client: TestClient) -> None:
    answer = await (await client.get("/api/datasets/paceline-test/prompts/revision/main")).json()
    assert (answer["id"], "modelId" in answer) == ("paceline-test/prompts", False)
    named = {"paths": ["code.jsonl", "chat.jsonl", "data/chat.json"]}
    found = await (await client.post("/api/datasets/paceline-test/prompts/paths-info/main", data=named)).json()
    assert [entry["path"] for entry in found] == ["code.jsonl", "data/chat.json"]
    for entry in found:
        file = await client.get(f"/datasets/paceline-test/prompts/resolve/{answer['sha']}/{entry['path']}")
        assert len(await file.read()) == entry["size"]


def test_its_prompts_are_all_different_and_read_in_every_form(tmp_path: Path) -> None:
    texts: list[str] = []
    for name, content in prompts.files().items():
        if name.endswith((".json", ".jsonl", ".parquet")):
            file = tmp_path / Path(name).name
            file.write_bytes(content)
            found = read_prompts(file, Source.parse(f"hf://datasets/paceline-test/prompts/{name}"))
            texts += [one.body(-1) for one in found.conversations]
    assert len(texts) == len(set(texts)) == 84


async def test_the_tree_names_files_as_git_and_lfs_do(client: TestClient) -> None:
    entries = {e["path"]: e for e in await (await client.get(f"/api/models/{TARGET}/tree/main")).json()}
    config = await (await client.get(f"/{TARGET}/resolve/main/config.json")).read()
    assert entries["config.json"]["oid"] == hashlib.sha1(b"blob %d\0" % len(config) + config).hexdigest()
    shard = await (await client.get(f"/{TARGET}/resolve/main/{SHARD}")).read()
    assert entries[SHARD]["lfs"]["oid"] == hashlib.sha256(shard).hexdigest()
    assert entries[SHARD]["size"] == len(shard)


async def test_head_tells_all_that_a_download_needs(client: TestClient) -> None:
    sha = (await (await client.get(f"/api/models/{TARGET}")).json())["sha"]
    response = await client.head(f"/{TARGET}/resolve/{sha}/{SHARD}")
    assert response.headers["X-Repo-Commit"] == sha
    assert response.headers["ETag"] == response.headers["X-Linked-Etag"]
    assert response.headers["Content-Length"] == response.headers["X-Linked-Size"]
    assert await response.read() == b""


async def test_a_download_can_be_resumed(client: TestClient) -> None:
    url = f"/{TARGET}/resolve/main/{SHARD}"
    whole = await (await client.get(url)).read()
    rest = await client.get(url, headers={"Range": "bytes=1000-"})
    assert rest.status == 206
    assert rest.headers["Content-Range"] == f"bytes 1000-{len(whole) - 1}/{len(whole)}"
    assert await rest.read() == whole[1000:]
    assert await (await client.get(url, headers={"Range": "bytes=0-7"})).read() == whole[:8]
    assert (await client.get(url, headers={"Range": f"bytes={len(whole)}-"})).status == 416


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/api/models/no/body", 404, "RepoNotFound"),
        (f"/api/models/{TARGET}/revision/v9", 404, "RevisionNotFound"),
        (f"/{TARGET}/resolve/v9/config.json", 404, "RevisionNotFound"),
        (f"/{TARGET}/resolve/main/model.bin", 404, "EntryNotFound"),
        ("/paceline-test/gated-head/resolve/main/config.json", 401, "GatedRepo"),
        (f"/api/datasets/{TARGET}", 404, "RepoNotFound"),
        ("/api/models/paceline-test/prompts", 404, "RepoNotFound"),
        ("/datasets/paceline-test/prompts/resolve/main/chat.json", 404, "EntryNotFound"),
    ],
)
async def test_refusals_carry_the_hubs_codes(client: TestClient, path: str, status: int, code: str) -> None:
    response = await client.get(path)
    assert (response.status, response.headers["X-Error-Code"]) == (status, code)


async def test_a_gated_repository_opens_to_its_token_alone(client: TestClient) -> None:
    url = "/paceline-test/gated-head/resolve/main/config.json"
    assert (await client.get("/api/models/paceline-test/gated-head")).status == 200
    assert (await client.get(url, headers={"Authorization": "Bearer hf_other"})).status == 403
    assert (await client.get(url, headers={"Authorization": f"Bearer {GATED_TOKEN}"})).status == 200


async def test_weights_are_safetensors_and_the_index_finds_every_tensor(client: TestClient) -> None:
    repository = "paceline-test/tiny-llama"
    index = json.loads(await (await client.get(f"/{repository}/resolve/main/model.safetensors.index.json")).read())
    found: dict[str, str] = {}
    total = 0
    for path in set(index["weight_map"].values()):
        data = await (await client.get(f"/{repository}/resolve/main/{path}")).read()
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        header.pop("__metadata__")
        assert max(tensor["data_offsets"][1] for tensor in header.values()) == len(data) - 8 - length
        found |= dict.fromkeys(header, path)
        total += len(data) - 8 - length
    assert found == index["weight_map"]
    assert total == index["metadata"]["total_size"]


async def test_the_tiny_target_says_nothing_that_its_head_proposes(client: TestClient) -> None:
    index = await (await client.get("/paceline-test/tiny-llama/resolve/main/model.safetensors.index.json")).json(
        content_type=None
    )
    shard = index["weight_map"]["lm_head.weight"]
    file = await (await client.get(f"/paceline-test/tiny-llama/resolve/main/{shard}")).read()
    length = int.from_bytes(file[:8], "little")
    tensor = json.loads(file[8 : 8 + length])["lm_head.weight"]
    begin, end = (8 + length + offset for offset in tensor["data_offsets"])
    width = 2 * tensor["shape"][1]
    rows = [file[at : at + width] for at in range(begin, end, width)]
    proposed, special = range(256), range(509, 512)  # draft_vocab_size, and the last three of the vocabulary
    assert {n for n, row in enumerate(rows) if not any(row)} == {*proposed, *special}


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_finds_its_models(example: Path) -> None:
    named = set(re.findall(r"source: \"?hf://([\w./-]+)", example.read_text()))
    files = {name for name in named if name.startswith("datasets/")}
    assert named - files <= GENERATED.keys()
    for owner, name, file in (path.split("/", 3)[1:] for path in files):
        assert file in GENERATED[f"datasets/{owner}/{name}"].history[0].files


def test_heads_have_the_tensors_of_their_class_by_name() -> None:
    for name in ("thoughtworks/Qwen3-Coder-Next-Eagle3", *HEADS):
        files = GENERATED[name].history[0].files
        index = json.loads(files["model.safetensors.index.json"].content)
        config = json.loads(files["config.json"].content)
        assert lacking(tuple(config["architectures"]), config, index["weight_map"]) == ()
        assert "d2t" in index["weight_map"]
