def cudnn_batch_prefill_with_kv_cache(*a, **k):
    raise RuntimeError("flashinfer is a stub here: no cuDNN prefill")
