"""What a page does to show a long list, counted: elements, items drawn, pictures of nothing.

How long it takes is the machine's affair; how much it does grows only if the page is wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.support.browser.browsing import Page, Route
from tests.support.waiting import PATIENCE

_SCROLL = """([selector, item, step, count]) => new Promise((resolve) => {
  const list = document.querySelector(selector);
  let [steps, drawn, blank, nodes, back] = [0, 0, 0, 0, step];
  const watch = new MutationObserver((changes) => {
    for (const one of changes.flatMap((change) => [...change.addedNodes])) {
      if (one instanceof Element && one.matches(".virtual-item")) drawn += 1;
    }
  });
  watch.observe(list, { childList: true, subtree: true });
  const isBlank = () => {
    const { left, top, width, height } = list.getBoundingClientRect();
    const there = [0.2, 0.5, 0.8].map((part) => top + height * part)
      .flatMap((y) => document.elementsFromPoint(left + width / 2, y));
    return !there.some((one) => one.matches(item));
  };
  const frame = () => {
    if (isBlank()) blank += 1;
    nodes = Math.max(nodes, document.querySelectorAll("*").length);
    if (steps === count) {
      watch.disconnect();
      return resolve({ steps, drawn, blank, nodes });
    }
    const before = list.scrollTop;
    list.scrollTop += back;
    if (list.scrollTop === before) back = -back;
    steps += 1;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})"""


@dataclass(frozen=True, slots=True)
class Scrolled:
    """``drawn`` counts the items that were put into the page on the way, ``blank`` the frames that
    showed nothing of the list, ``nodes`` is the most elements that the page had."""

    steps: int
    drawn: int
    blank: int
    nodes: int


async def scrolled(page: Page, list: str, item: str, step: int, steps: int = 120) -> Scrolled:
    """Scroll a list so many pixels a frame, and back at its ends; ``item`` is what fills it."""
    async with asyncio.timeout(PATIENCE):
        return Scrolled(**await page.evaluate(_SCROLL, [list, item, step, steps]))


async def is_drawn(page: Page) -> bool:
    """Does the page get frames?  Where Chromium fails to make them, scripts and requests go on."""
    try:
        async with asyncio.timeout(PATIENCE):
            await page.evaluate("() => new Promise(requestAnimationFrame)")
    except TimeoutError:
        return False
    return True


async def elements(page: Page) -> int:
    return await page.locator("*").count()


@asynccontextmanager
async def unanswered(page: Page, requests: str) -> AsyncIterator[None]:
    """Requests of the page to such addresses have no answer as long as the block runs."""
    over = asyncio.Event()

    async def hold(route: Route) -> None:
        await over.wait()
        await route.continue_()

    await page.route(requests, hold)
    try:
        yield
    finally:
        over.set()
        await page.unroute_all(behavior="wait")
