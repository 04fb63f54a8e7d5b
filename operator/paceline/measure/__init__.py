"""The run of a pool on this machine, without a cluster: `paceline measure`. Read this first.

    1. models     the models and prompts of a file: where they are here, or downloaded; each with its commit
    2. question   the file's pool at these commits, as the BenchmarkRun that the operator would make
    3. record     the file that remembers the run; a run that was interrupted goes on from it
    4. rounds     the operator's planner says what to do; a round's Job is carried out here
    5. pod        its two containers as processes: the wrapper with the engine's servers, and the client
    6. machine    what an image, a node and a volume are here: commands, variables, paths

Order of arms, retries, deadlines, budget, gate and verdict are the planner's (`plan.run`); the wrapper, the client and
what they write are those of a pod. What differs is told in each round's notes.
"""
