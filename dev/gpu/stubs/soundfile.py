"""Stub: imported by the speech endpoints; no sound is read here."""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise RuntimeError(f"soundfile.{name}: a stub")
