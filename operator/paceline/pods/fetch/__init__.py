"""Brings a deployment's models and prompts onto the cache volume: all of them or none, pinned to commits.

`python -m paceline.pods.fetch`; `__main__` tells it in order. PACELINE_FETCH in the environment is JSON:

    {"models": [{"source": "hf://OWNER/NAME", "revision": "main"}, …],   # target first; revision: default main
                                       # pvc://CLAIM/PATH: at PATH below "path" already; nothing is brought
     "datasets": [{"source": "hf://datasets/OWNER/NAME/PATH", "revision": "main"}, …],   # may be left out
                                       # each of both may have a "commit": the revision was resolved before
     "path": "/models",                # the cache volume
     "keepRevisions": 2,               # of each repository, the one just fetched included
     "trustRemoteCode": false,         # true: Python files are fetched too
     "inUse": ["COMMIT", …],           # commits that servers or kept revisions still name: never removed
     "user": "NAMESPACE/NAME"}         # whose request it is

The hub's client takes HF_ENDPOINT, HF_TOKEN and proxies from the environment. On the volume:

    hub/                    the client's own cache: models--OWNER--NAME/snapshots/COMMIT, datasets--OWNER--NAME/…
    fetch/sets/*.json       a set of commits that is complete: the message of its fetch
    fetch/users/*.json      the commits that a user may serve, as of its last fetch: nobody removes them. The file of a
                            deployment that is gone is for a person to delete
    fetch/locks/*.lock      who is fetching a repository

The commit of what is on the volume already is a digest of its files' names, their sizes and config.json. `reading` is
where a model's files become the facts that preflight wants. Of a dataset one file is brought, and read as a round will
read it: what cannot be sent is refused before weights are downloaded and before an accelerator is taken.

Termination message: `preflight.read_message`. Exit codes: 0 done; 1 trying again may help; 2 a person must act; both
with one sentence as the message; 143 ended by SIGTERM. What is complete is kept from try to try, file by file (the
client starts a file that was cut off by the end of the process from its beginning; a cut connection is resumed).
"""
