"""Stands in for DeepSeek's sparse attention, which needs deep_gemm: named in type checks, never made."""


class DeepseekSparseAttnBackend: ...


class DeepseekSparseAttnMultiStepBackend: ...
