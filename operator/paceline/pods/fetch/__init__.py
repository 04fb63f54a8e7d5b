"""Downloads a deployment's models and prompts to the cache volume: all of them or none, pinned to commits.

`python -m paceline.pods.fetch`; `__main__` has the order. `paceline.fetching` defines the request, which is in the
environment, and the result, which is the termination message. On the volume:

    hub/                    the client's own cache: models--OWNER--NAME/snapshots/COMMIT, datasets--OWNER--NAME/…
                            and models--s3+BUCKET+PREFIX, in the same layout, with objects/COMMIT
    fetch/sets/*.json       a set of commits that is complete: the message of its fetch
    fetch/users/*.json      the commits that a user may serve, as of its last fetch: never removed. After a deployment
                            is deleted, a person may delete its file
    fetch/locks/*.lock      which pod is fetching a repository

A model that is on the volume already (pvc://) is listed, not downloaded. Its commit is a digest of its files' names,
their sizes and config.json; `bucket` has the commits of s3:// and gs://. `reading` derives preflight's facts from a
model's files. One file of a dataset is downloaded and read in the same way as by a round: unusable prompts are refused
before weights are downloaded and before an accelerator is taken.

Exit codes: 0 done; 1 another try may help; 2 a person must act. The message of 1 and 2 is one sentence. 143: ended by
SIGTERM. Complete files are kept from try to try. The client starts a file from its beginning if its process ended
during the download; it resumes after a cut connection.

The hub's client takes HF_ENDPOINT, HF_TOKEN and proxies from the environment, that of buckets AWS_… and GOOGLE_….
Complete objects of a bucket are not kept from try to try: only all of them have a commit.
"""
