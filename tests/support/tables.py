"""The table of o200k_base, which the proxy only uses where somebody has put it."""

from __future__ import annotations

import gzip
from hashlib import sha1
from importlib.util import find_spec
from pathlib import Path

_URL = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"

O200K_FILE = sha1(_URL.encode()).hexdigest()
"""Its name in a cache of tiktoken's."""


def o200k_table() -> bytes:
    """The table as another implementation brings it along."""
    # found without importing the package: that loads every table
    spec = find_spec("bpe_openai")
    assert spec is not None and spec.origin is not None
    return gzip.decompress(
        (Path(spec.origin).parent / "data" / "o200k_base.tiktoken.gz").read_bytes()
    )
