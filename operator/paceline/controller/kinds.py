"""Our kinds, and others that are not built into Kubernetes."""

from paceline.kube import Kinds, Resource, kinds

SPECULATIVE_DEPLOYMENT = Resource("paceline.dev", "v1alpha1", "speculativedeployments", "SpeculativeDeployment")
BENCHMARK_RUN = Resource("paceline.dev", "v1alpha1", "benchmarkruns", "BenchmarkRun")
BENCHMARK_ROUND = Resource("paceline.dev", "v1alpha1", "benchmarkrounds", "BenchmarkRound")
BENCHMARK_PROFILE = Resource("paceline.dev", "v1alpha1", "benchmarkprofiles", "BenchmarkProfile")
LEADER_WORKER_SET = Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet")
HTTP_ROUTE = Resource("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute")
INFERENCE_POOL = Resource("inference.networking.k8s.io", "v1", "inferencepools", "InferencePool")
RECONCILED_KINDS: Kinds = kinds(
    SPECULATIVE_DEPLOYMENT,
    BENCHMARK_RUN,
    BENCHMARK_ROUND,
    BENCHMARK_PROFILE,
    LEADER_WORKER_SET,
    HTTP_ROUTE,
    INFERENCE_POOL,
)
