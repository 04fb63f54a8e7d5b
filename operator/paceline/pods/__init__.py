"""What runs in pods that Paceline starts: `round` measures, `fetch` brings models."""
