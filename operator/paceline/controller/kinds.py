"""Our two kinds, and the other kind that is not built into Kubernetes."""

from paceline.kube import Kinds, Resource, kinds

SPECULATIVE_DEPLOYMENT = Resource("paceline.dev", "v1alpha1", "speculativedeployments", "SpeculativeDeployment")
BENCHMARK_RUN = Resource("paceline.dev", "v1alpha1", "benchmarkruns", "BenchmarkRun")
LEADER_WORKER_SET = Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet")
KINDS: Kinds = kinds(SPECULATIVE_DEPLOYMENT, BENCHMARK_RUN, LEADER_WORKER_SET)
