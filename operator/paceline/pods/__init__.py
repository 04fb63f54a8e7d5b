"""What runs in pods that we start: `round` measures, `fetch` brings models; `datasets` are the built-in prompts."""
