"""Converts a Deployment of SGLang or vLLM to a SpeculativeDeployment: `paceline import`.

`command` finds the engine's words in command and arguments (`script` reads a script), `arguments` assigns each of them
to a field, `speculation` makes a candidate from the speculative ones, `models` resolves paths, `pod` and `environment`
carry over the rest of the pod, `resource` combines everything. Each returns a `Note` for everything it omits or
changes. Finally, `hidden` removes secrets.
"""
