"""An OpenAI-compatible streaming reverse proxy that gives chat applications memory."""

import os

# Recall's products of small matrices are no work for several threads, and numpy's library starts
# one for each core as soon as it is loaded: this is what runs before that in every process, however
# it is begun.  Whoever sets the variable means it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "0.1.0"
