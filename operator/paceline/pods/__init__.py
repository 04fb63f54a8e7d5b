"""Code that runs in pods that we start: `round` measures, `fetch` downloads models; `datasets` are the built-in
prompts."""
