"""Tokens of a text, in the encoding of the models that most people use."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module

from proxy.chat.models.tokens import Tokenizers

MODEL = "gpt-4o"


def counter() -> Callable[[str], int]:
    """o200k_base where its package is installed, else as the proxy counts.  Half a second."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # it opens its tables the old way
            encode = import_module("bpe_openai").get_encoding("o200k_base").encode
    except ImportError:
        return Tokenizers().counter_for(MODEL).count_text
    return lambda text: len(encode(text))
