"""A claim of a story's own, and models that somebody put on it."""

from tests.support.kubernetes import Manifest, Namespace

NO_XET = {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}


def claim(name: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }


def filled(here: Namespace, name: str, program: str, env: dict[str, str]) -> str:
    """A new claim of that name after `program` (Python) has run with it at /models; what the program printed."""
    here.apply(claim(name))
    here.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "fill"},
            "spec": {
                "restartPolicy": "Never",
                "securityContext": {"fsGroup": 65532},
                "containers": [
                    {
                        "name": "fill",
                        "image": "localhost/paceline:dev",
                        "command": ["python", "-c", program],
                        "env": [{"name": name, "value": value} for name, value in env.items()],
                        "volumeMounts": [{"name": "models", "mountPath": "/models"}],
                    }
                ],
                "volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": name}}],
            },
        }
    )
    here.wait("the models to be on the claim", lambda: here.get("pod", "fill")["status"]["phase"] == "Succeeded", 60)
    return here.logs("fill", "fill")
