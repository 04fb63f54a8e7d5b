"""Paceline deploys draft-head model servers and promotes a draft/tree configuration only on measured evidence.

The story, module by module:

1. A `SpeculativeDeployment` arrives; `api` checks it and turns it into the words of `core`.
2. `controller` gathers what the cluster holds into a snapshot; `plan.deployment` says what to do about it.
3. `engines` turns an arm into a server's argv; `render` builds the objects; the baseline is served first.
4. A `BenchmarkRun` is made for each pool; `plan.run` starts one Job a round; `pods.round` measures all arms on
   the same GPUs, one after another, and leaves its numbers in the client's log.
5. `evidence` judges those numbers; `gate` turns rounds into a verdict: Promote, Reject, Inconclusive or Error.
6. `plan.deployment` sees the verdict, and what `choose` answers is rolled out: that is promotion, nothing more.

`kube` is plumbing and knows nothing of the above.
"""

__version__ = "0.1.0"
