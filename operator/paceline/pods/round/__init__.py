"""The client of a round: starts one arm after another through the wrapper, and measures each with SGLang's own client.

Read `steps` first: the protocol, without I/O. `runner` does the I/O with `control` (the wrapper in the server's
container), `server` (HTTP) and `load` (the benchmark client); `report` turns the client's numbers into points.
`bench_client` runs as a process: the compiled client of the pinned sglang wheel.
"""
