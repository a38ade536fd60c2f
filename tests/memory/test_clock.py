"""A clock that is put back loses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.memory.erasure import SteadyClock, steady_now
from tests.support.clock import Clock
from tests.support.processes.running import running, settings_for
from tests.support.store.inside import AUTHORIZATION
from tests.support.talk.chatting import chatting, memory_of
from tests.support.upstream.scripted import ScriptedUpstream


def test_time_goes_on_while_the_clock_is_put_back() -> None:
    source = Clock(5000.0)
    clock = SteadyClock(source)
    times = [clock(), clock()]
    source.now = 1400.0
    times += [clock(), clock()]
    source.now = 5001.0
    times += [clock()]
    assert times == sorted(set(times)) and times[0] == 5000.0 and times[-1] == 5001.0
    assert times[-2] < 5000.1


async def test_what_is_said_after_an_erasure_is_recorded_though_the_clock_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = Clock(steady_now())
    monkeypatch.setattr(steady_now, "_source", now)
    async with ScriptedUpstream() as up:
        settings = settings_for(tmp_path, up.url)
        async with running(settings) as proxy, chatting(proxy.url) as chat:
            await chat.say("before", "s")
            erased = await chat.client.delete(
                "/memory/v1/sessions/s", headers={"authorization": AUTHORIZATION}
            )
            assert erased.status_code in (200, 204)
            now.now -= 3600
            assert memory_of(await chat.say("after", "s")) == (200, "empty", None)
            assert (await chat.say("again", "s")).headers["x-memory-status"] == "applied"
            assert 'outcome="erased"' not in proxy.application._telemetry.render().decode()
