import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # One thread a process.
