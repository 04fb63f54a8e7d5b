"""The part of the hub's HTTP protocol that huggingface_hub 2.4 uses to look up and download a model or a dataset.

Paths, headers and error codes were read from that client's source. Information about a gated repository is public,
its files are not, as on the real hub. No file has an `X-Xet-Hash`, so the client downloads over plain HTTP.
"""

from collections.abc import Mapping
from typing import Any

from aiohttp import hdrs, web

from paceline_emulator.hub.repository import File, Repository, Snapshot

CHUNK = 1 << 20


DATASET = "{kind:datasets/}"
"""Stands before the owner in the paths of a dataset; a model's have nothing there."""


def application(repositories: Mapping[str, Repository]) -> web.Application:
    """Serve the mapping, by `OWNER/NAME` and `datasets/OWNER/NAME`, as it is at the time of each request."""

    def find(request: web.Request) -> tuple[str, Repository, Snapshot]:
        name = "{owner}/{name}".format_map(request.match_info)
        repository = repositories.get(f"{request.match_info.get('kind', '')}{name}")
        if repository is None:
            raise _refused(web.HTTPNotFound, "RepoNotFound", "Repository not found")
        revision = request.match_info.get("revision", "main")
        found = repository.at(revision)
        if found is None:
            raise _refused(web.HTTPNotFound, "RevisionNotFound", f"Invalid rev id: {revision}")
        return name, repository, found

    async def info(request: web.Request) -> web.Response:
        name, repository, at = find(request)
        return web.json_response(
            {
                "id": name,
                **({} if "kind" in request.match_info else {"modelId": name}),
                "author": name.split("/")[0],
                "sha": at.commit,
                "private": False,
                "gated": "manual" if repository.token else False,
                "disabled": False,
                "tags": ["invented"] if repository.invented else [],
                "siblings": [{"rfilename": path} for path in at.files],
            }
        )

    async def tree(request: web.Request) -> web.Response:
        _, _, at = find(request)
        return web.json_response([_entry(path, file) for path, file in at.files.items()])

    async def paths_info(request: web.Request) -> web.Response:
        """Of those that are there; the others are left out."""
        _, _, at = find(request)
        asked = [str(path) for path in (await request.post()).getall("paths")]
        return web.json_response([_entry(path, at.files[path]) for path in asked if path in at.files])

    async def resolve(request: web.Request) -> web.StreamResponse:
        _, repository, at = find(request)
        _check_access(request, repository)
        file = at.files.get(request.match_info["path"])
        if file is None:
            raise _refused(web.HTTPNotFound, "EntryNotFound", "Entry not found", {"X-Repo-Commit": at.commit})
        return await _send(request, file, at.commit)

    app = web.Application()
    for api, files in (("models/", ""), (DATASET, DATASET)):
        at = f"/api/{api}{{owner}}/{{name}}"
        app.add_routes(
            [
                web.get(at, info),
                web.get(f"{at}/revision/{{revision}}", info),
                web.get(f"{at}/tree/{{revision}}", tree),
                web.post(f"{at}/paths-info/{{revision}}", paths_info),
                web.get(f"/{files}{{owner}}/{{name}}/resolve/{{revision}}/{{path:.+}}", resolve),
            ]
        )
    return app


async def _send(request: web.Request, file: File, commit: str) -> web.StreamResponse:
    """The file, or the one range of it that is asked for."""
    size = len(file.content)
    headers = {"ETag": f'"{file.etag}"', "X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
    if file.sha256:
        headers |= {"X-Linked-Etag": f'"{file.sha256}"', "X-Linked-Size": str(size)}
    start, stop = 0, size
    if hdrs.RANGE in request.headers:
        try:
            start, stop, _ = request.http_range.indices(size)
        except ValueError:
            start = size
        if start >= size:
            raise web.HTTPRequestRangeNotSatisfiable(headers={"Content-Range": f"bytes */{size}"})
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
    headers["Content-Length"] = str(stop - start)
    response = web.StreamResponse(status=206 if "Content-Range" in headers else 200, headers=headers)
    response.content_type = "application/octet-stream"
    await response.prepare(request)
    if request.method != hdrs.METH_HEAD:
        for at in range(start, stop, CHUNK):
            await response.write(file.content[at : min(at + CHUNK, stop)])
    await response.write_eof()
    return response


def _entry(path: str, file: File) -> dict[str, Any]:
    size = len(file.content)
    entry = {"type": "file", "oid": file.oid, "size": size, "path": path}
    if file.sha256:
        entry["lfs"] = {"oid": file.sha256, "size": size, "pointerSize": 134}
    return entry


def _check_access(request: web.Request, repository: Repository) -> None:
    """401 without a token, 403 with one that does not open this repository."""
    if repository.token is None:
        return
    offered = request.headers.get(hdrs.AUTHORIZATION)
    if offered is None:
        raise _refused(web.HTTPUnauthorized, "GatedRepo", "Access to this repository is restricted: log in")
    if offered != f"Bearer {repository.token}":
        raise _refused(web.HTTPForbidden, "GatedRepo", "Access to this repository is restricted: ask its owner")


def _refused(
    error: type[web.HTTPException], code: str, message: str, headers: Mapping[str, str] | None = None
) -> web.HTTPException:
    return error(headers={"X-Error-Code": code, "X-Error-Message": message, **(headers or {})}, text=message)
