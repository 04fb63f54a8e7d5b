"""The client of a round: asks the wrapper for one arm after another and measures each with SGLang's own client.

Read `steps` first: the protocol, without I/O. `room` does the I/O, with the help of `control` (the wrapper beside us),
`server` (HTTP), `load` (the benchmark client) and `report` (what its numbers mean). `rust` is a process of its own: the
compiled client of the pinned sglang wheel.
"""
