"""Stub: imported by a middleware that is off unless SGLANG_ENABLE_REQUEST_DECOMPRESSION is set."""


def ZstdDecompressor(*a, **k):
    raise RuntimeError("zstandard is a stub here")
