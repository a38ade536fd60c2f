"""Sessions that have something to lose, and whether they lost it."""

from __future__ import annotations

import json

from tests.support.rig import Rig, Talk
from tests.support.upstream import raw


async def began(rig: Rig) -> Talk:
    """A session that has something to lose; the upstream takes anything from now on."""
    talk = rig.talk()
    await talk.say("u1", "a1")
    rig.up.strict = False
    return talk


async def nothing_was_lost(talk: Talk, log: str = "u1 a1") -> None:
    """The proxy still serves, and the session is as it was."""
    talk.rig.up.strict = True
    assert await talk.log() == log
    assert await talk.say("u7", "a7") == f"{log} u7"


def refusal(answer: raw.Answer) -> tuple[int, str]:
    """The status and code of an answer of the proxy's own, which has OpenAI's shape."""
    assert answer.get("content-type") == b"application/json"
    said = json.loads(answer.body)
    assert said.keys() == {"error"}
    assert said["error"].keys() == {"message", "type", "param", "code"}
    assert said["error"]["message"].endswith(".")
    return answer.status, str(said["error"]["code"])
