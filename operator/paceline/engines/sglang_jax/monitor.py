"""Why sglang-jax cannot be monitored. Source: the commit cddbf6f, read and run."""

from paceline.engines.monitor import Monitor

MONITOR = Monitor(
    cannot="sglang-jax has no metrics of acceptance, latency or load: its /metrics has pd_* series only"
    " (disaggregation/common/metrics.py:50), and its log is not read in production"
)
