"""The run of a pool on this machine, without a cluster: `paceline measure`. Read this first.

    1. models     the models and prompts of a file: find or download them, each with its commit
    2. question   the BenchmarkRun that the operator would make of the file's pool at these commits
    3. record     the file with the run's state; an interrupted run continues from it
    4. rounds     follow the operator's planner; carry out a round's Job here
    5. pod        the Job's two containers as processes: the wrapper with the engine's servers, and the client
    6. machine    replaces image, node and volume by commands, variables and paths

The planner (`plan.run`) decides the order of arms, retries, deadlines, budget, gate and verdict; the
wrapper and the client are the same programs as in a pod. Each round's notes list the differences.
"""
