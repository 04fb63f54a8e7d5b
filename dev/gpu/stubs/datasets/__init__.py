"""Stub: sglang's benchmark client imports it for data sets that would be fetched; nothing is fetched here."""


class Dataset:
    pass


def load_dataset(*a, **k):
    raise RuntimeError("datasets is a stub here")
