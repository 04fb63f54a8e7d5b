"""Rules that both specs have: models and the cache's claim, labels of pods."""

from paceline.api.rules import Rule


def on_the_claim(source: str, claim: str, field: str, **each: str) -> Rule:
    """A model on a volume must be on the one that is mounted. `source` is a path in CEL whose fields may be absent,
    `claim` CEL that is empty where the cache has none."""
    names = source.split(".")
    absent = [f"!has({'.'.join(names[:i])})" for i in range(2, len(names) + 1)]
    return Rule(
        each=each,
        cel=" || ".join((*absent, f"!{source}.startsWith('pvc://')", f"{source}.startsWith('pvc://' + {claim} + '/')")),
        message="source pvc://CLAIM/PATH must name the cache's own claim, the only volume that is mounted; a cache "
        f"with hostPath has none: use existingClaim or claim; got {{{source}}}",
        field=field,
    )


OUR_LABELS = "podLabels must be labels of others: paceline.dev/ and app.kubernetes.io/managed-by are Paceline's"
NO_LABELS_OF_OURS = Rule(
    each={"k": "self.podLabels"},
    cel="!k.startsWith('paceline.dev/') && k != 'app.kubernetes.io/managed-by'",
    message=OUR_LABELS,
)
"""Rule of a model with `podLabels`: a round that looked like a server would be sent traffic."""
