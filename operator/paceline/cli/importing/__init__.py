"""How a Deployment that runs SGLang or vLLM becomes a SpeculativeDeployment: `paceline import`.

`command` finds the engine's words in command and arguments (`script` reads a script), `arguments` gives each of them a
field, `speculation` makes a candidate of those that speculate, `models` finds what a path stands for, `pod` and
`environment` carry over the rest of the pod, `resource` puts it together. Each returns `Note`s of what it leaves out or
changes: nothing is dropped in silence. `hidden` takes out secrets, last of all.
"""
