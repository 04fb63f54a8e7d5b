"""Decides what to do now: snapshot → status and actions. Pure; the clock is an argument.

`deployment` and `run` are independent: they meet only in a BenchmarkRun's spec and status. Each has its list of steps
at the top of its `__init__`; `step` has the types that both share. Every step is a function of a snapshot and the time.
"""
