"""Reads the counters of servers from a Prometheus server that scrapes them.

This is for clusters whose operator must not reach the pods. One query per look returns all samples of a pool; they need
the labels `namespace` and `pod`, which the Prometheus Operator's monitors and the usual relabelling give them.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp

from paceline.controller.pages import FAILURES, process_of
from paceline.engines import Counts, Monitor, UnreadableError
from paceline.kube import Manifest
from paceline.kube.reading import read_body
from paceline.watch import Process

LONGEST_ANSWER = 16 * 2**20
"""Maximum bytes: a sample has about 300, a server with one label set 20 samples."""
NOWHERE = "the installation names no Prometheus server: set the chart's prometheus.url, or guard.source to Pods"

SeriesKey = tuple[str, str]
"""Job and instance: if a pod is scraped twice, only one of its series counts."""
SeriesSamples = Mapping[str, Mapping[SeriesKey, list[tuple[str, float]]]]
"""Pod → series → its samples by name."""


async def from_prometheus(
    http: aiohttp.ClientSession, server: str, monitor: Monitor, pods: Sequence[Manifest]
) -> Mapping[Process, Counts | str]:
    """Each pod's counters from `server`, a URL, or why they are unknown."""
    if not pods:
        return {}
    processes: dict[str, Process] = {pod["metadata"]["name"]: process_of(pod) for pod in pods}
    if not server:
        return dict.fromkeys(processes.values(), NOWHERE)
    try:
        samples = await _samples(http, server, monitor, query(monitor, pods[0]["metadata"]["namespace"], processes))
    except FAILURES as error:
        return dict.fromkeys(processes.values(), f"{server}: {str(error) or type(error).__name__}")
    return {of: _counts(monitor, name, samples.get(name, {})) for name, of in processes.items()}


def query(monitor: Monitor, namespace: str, pods: Mapping[str, Any]) -> str:
    names, those = "|".join(sorted(monitor.names)), "|".join(re.escape(pod) for pod in sorted(pods))
    return f"{{__name__=~{json.dumps(names)},namespace={json.dumps(namespace)},pod=~{json.dumps(those)}}}"


async def _samples(http: aiohttp.ClientSession, server: str, monitor: Monitor, asked: str) -> SeriesSamples:
    """Query the samples. Raises one of FAILURES."""
    url = f"{server.rstrip('/')}/api/v1/query"
    async with http.post(url, data={"query": asked}, allow_redirects=False) as answer:
        text = await read_body(answer.content, LONGEST_ANSWER)
        if answer.status != 200:
            raise UnreadableError(f"answered {answer.status}: {text[:200].decode(errors='replace')}")
    return read_samples(monitor, text)


def read_samples(monitor: Monitor, answer: bytes) -> SeriesSamples:
    """The samples of an instant vector in JSON. Raises UnreadableError."""
    found: dict[str, dict[SeriesKey, list[tuple[str, float]]]] = {}
    try:
        for each in json.loads(answer)["data"]["result"]:
            labels, (_, value) = each["metric"], each["value"]
            if not all(isinstance(text, str) for text in (*labels.values(), value)):
                raise TypeError("labels and values are texts")
            series = labels.get("job", ""), labels.get("instance", "")
            samples = found.setdefault(labels["pod"], {}).setdefault(series, [])
            if monitor.counted(labels["__name__"], labels.get(monitor.part_label)):
                samples.append((labels["__name__"], float(value)))
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise UnreadableError(f"did not answer with an instant vector: {answer[:200]!r}") from error
    return found


def _counts(monitor: Monitor, pod: str, of: Mapping[SeriesKey, list[tuple[str, float]]]) -> Counts | str:
    if not of:
        return f"{pod}: Prometheus has no series {monitor.prefix}* whose labels namespace and pod name this pod"
    try:
        return monitor.counts(of[min(of)])
    except UnreadableError as error:
        return f"{pod}: {error}"
