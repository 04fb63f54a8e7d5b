import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # As `paceline search replay` does.
