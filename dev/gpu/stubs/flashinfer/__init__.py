"""Stub: sglang's sampler imports flashinfer.sampling on every CUDA start, also with --sampling-backend pytorch.
SGLANG_IS_FLASHINFER_AVAILABLE=false has to be set, so that nothing else takes this for the real package."""

__version__ = "0.0.0+stub"


def bmm_fp8(*a, **k):
    raise RuntimeError("flashinfer is a stub here: no fp8 batched products")
