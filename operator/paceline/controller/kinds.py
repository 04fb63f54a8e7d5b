"""Our two kinds, as the API server serves them."""

from paceline.kube import Kinds, Resource, kinds

SPECULATIVE_DEPLOYMENT = Resource("paceline.dev", "v1alpha1", "speculativedeployments", "SpeculativeDeployment")
BENCHMARK_RUN = Resource("paceline.dev", "v1alpha1", "benchmarkruns", "BenchmarkRun")
KINDS: Kinds = kinds(SPECULATIVE_DEPLOYMENT, BENCHMARK_RUN)
