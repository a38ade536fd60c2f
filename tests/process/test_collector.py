"""The garbage collector stops all streams, so it looks at little at a time."""

from __future__ import annotations

import gc
from typing import Any

from proxy.process.runtime import YOUNG_OBJECTS, keep_uncollected


def test_a_flood_of_objects_is_looked_at_little_by_little() -> None:
    thresholds, waiting = gc.get_threshold(), list[int]()

    def note(phase: str, info: dict[str, Any]) -> None:
        if phase == "start" and info["generation"] == 1:
            waiting.append(len(gc.get_objects(generation=1)))

    try:
        with keep_uncollected():
            pass
        gc.callbacks.append(note)
        flood = [[n] for n in range(40 * YOUNG_OBJECTS)]
        assert len(flood) and len(waiting) > 1
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*thresholds)
        gc.unfreeze()
    assert max(waiting) <= 4 * YOUNG_OBJECTS
