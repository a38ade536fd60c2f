"""How fast a page is, as its own browser tells: paints, frames, long tasks, elements."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.support.browsing import Page

TRIES = 5

_PAINTED = """() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null"""

_UNTIL = """([act, wanted]) => new Promise((resolve) => {
  const start = performance.now();
  const look = () => document.querySelector(wanted)
    ? requestAnimationFrame(() => resolve(performance.now() - start))
    : requestAnimationFrame(look);
  if (act.startsWith("#")) location.hash = act;
  else document.querySelector(act).click();
  look();
})"""

_SCROLL = """([selector, item, step, count]) => new Promise((resolve) => {
  const list = document.querySelector(selector);
  const [times, tasks] = [[], []];
  let [nodes, blank, back] = [0, 0, step];
  const watch = new PerformanceObserver((found) => {
    for (const task of found.getEntries()) tasks.push(task.duration);
  });
  watch.observe({ entryTypes: ["longtask"] });
  const isBlank = () => {
    const { left, top, width, height } = list.getBoundingClientRect();
    const there = [0.2, 0.5, 0.8].map((part) => top + height * part)
      .flatMap((y) => document.elementsFromPoint(left + width / 2, y));
    return !there.some((one) => one.matches(item));
  };
  let last = performance.now();
  const frame = () => {
    const now = performance.now();
    times.push(now - last);
    last = now;
    if (isBlank()) blank += 1;
    nodes = Math.max(nodes, document.querySelectorAll("*").length);
    const before = list.scrollTop;
    list.scrollTop += back;
    if (list.scrollTop === before) back = -back;
    if (times.length < count) return requestAnimationFrame(frame);
    watch.disconnect();
    times.sort((one, other) => one - other);
    const at = (part) => times[Math.min(times.length - 1, Math.floor(times.length * part))];
    resolve({ p50: at(0.5), p95: at(0.95), most: at(1), blank, nodes,
      tasks: tasks.length, longest: Math.max(0, ...tasks) });
  };
  requestAnimationFrame(frame);
})"""


@dataclass(frozen=True, slots=True)
class Scrolled:
    """Frame times and long tasks (over 50 ms) in milliseconds.

    ``blank`` counts frames that showed nothing of the list, ``nodes`` is the most elements that
    the page had.
    """

    p50: float
    p95: float
    most: float
    blank: int
    nodes: int
    tasks: int
    longest: float


async def best(measured: Callable[[], Awaitable[float]], enough: float) -> float:
    """The least of a few measurements, of one if that is below ``enough``: the machine does other
    things too."""
    least = math.inf
    for _ in range(TRIES):
        least = min(least, await measured())
        if least < enough:
            break
    return least


async def first_paint(page: Page) -> float:
    """Milliseconds from the start of loading to the first contentful paint."""
    await page.wait_for_function(_PAINTED)
    return float(await page.evaluate(_PAINTED))


async def until_there(page: Page, act: str, wanted: str) -> float:
    """Milliseconds from a click on ``act``, or going there if it is "#…", to seeing ``wanted``."""
    return float(await page.evaluate(_UNTIL, [act, wanted]))


async def scrolled(page: Page, list: str, item: str, step: int, frames: int = 120) -> Scrolled:
    """Scroll a list so many pixels a frame, and back at its ends; ``item`` is what fills it."""
    return Scrolled(**await page.evaluate(_SCROLL, [list, item, step, frames]))
