"""The attacks.  Each is built before it is timed, and run in a thread."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from bench.attack.doors import DOORS
from bench.attack.kinds import MEGABYTE, Attack, Run
from bench.attack.sending import Attacker, Json, assistant, chat_head, messages_body, user


def _head(path: str, *fields: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "host: 127.0.0.1", "transfer-encoding: chunked", *fields]
    return "\r\n".join([*lines, "", ""]).encode()


def _trailers() -> Run:
    """300 MB of trailer fields behind a complete body; no key is needed."""
    fields = b"".join(b"x-field-%06d: %b\r\n" % (n, b"v" * 100) for n in range(8_000))

    def pieces() -> Iterator[bytes]:
        yield _head("/healthz") + b"2\r\n{}\r\n0\r\n"
        for _ in range(300):
            yield fields

    return lambda attacker: attacker.raw(pieces(), 15)


def _endless_trailer() -> Run:
    """One trailer value of 170 MB."""

    def pieces() -> Iterator[bytes]:
        yield _head("/healthz") + b"2\r\n{}\r\n0\r\nx-field: "
        for _ in range(170):
            yield b"v" * MEGABYTE

    return lambda attacker: attacker.raw(pieces(), 15)


def _chats(*bodies: bytes, **headers: str) -> Run:
    """These bodies, one after the other, in one session."""

    def run(attacker: Attacker) -> None:
        for body in bodies:
            attacker.chat("attack", body, **headers)

    return run


def _then_next(messages: int) -> Callable[[], Run]:
    """A chat of so many messages, and at once another in its session."""

    def build() -> Run:
        body = messages_body(user(f"m{n}") for n in range(messages))
        return _chats(body, messages_body([user("next")]))

    return build


def _resent(turns: int) -> Callable[[], Run]:
    """A client that resends its whole conversation, four times, a turn longer each time."""

    def build() -> Run:
        log: list[Json] = []
        for n in range(turns):
            log += [user(f"question {n}"), assistant(f"answer {n}")]
        bodies = [messages_body(log + [user("and now?")])]
        for n in range(3):
            log += [user(f"and now {n}?"), assistant(f"now {n}")]
            bodies.append(messages_body([*log, user(f"more {n}")]))
        return _chats(*bodies)

    return build


def _grown(messages: int) -> Callable[[], Run]:
    """A session that grew, chat by chat, and then a client that shows an answer, four times."""

    def build() -> Run:
        most = 11_900
        chats = [
            messages_body(user(f"m{n}") for n in range(start, min(start + most, messages)))
            for start in range(0, messages, most)
        ]
        shown = messages_body([user("m1"), assistant("an answer"), user("and now?")])
        return _chats(*chats, *[shown] * 4)

    return build


def _taken_back(messages: int) -> Callable[[], Run]:
    """The same, and then everything is taken back, in two ways."""
    grow = _grown(messages)

    def build() -> Run:
        grown, anew = grow(), messages_body([user("anew")])

        def run(attacker: Attacker) -> None:
            grown(attacker)
            attacker.chat("attack", anew, x_memory_history="full")
            attacker.chat("attack", anew, x_memory_rewind="100000")

        return run

    return build


def _same_words(messages: int) -> Callable[[], Run]:
    """The same two words, thousands of times, resent."""

    def build() -> Run:
        log = [user("ok"), assistant("ok")] * (messages // 2)
        return _chats(messages_body([*log, user("ok")]), messages_body([*log, user("ok")]))

    return build


def _loop(calls: int, *, equal: bool) -> Callable[[], Run]:
    """One turn of so many calls and results, then a new question resending all."""

    def build() -> Run:
        log = [user("do it")]
        for n in range(calls):
            id = "call_0" if equal else f"call_{n}"
            function = {"name": "look", "arguments": "{}" if equal else json.dumps({"n": n})}
            call = {"id": id, "type": "function", "function": function}
            log.append({"role": "assistant", "content": None, "tool_calls": [call]})
            log.append({"role": "tool", "tool_call_id": id, "content": "seen" if equal else str(n)})
        first, second = [*log, assistant("done")], user("and now?")
        return _chats(messages_body([*first, second]), messages_body([*first, second, user("so?")]))

    return build


def _content(content: bytes) -> bytes:
    return b'{"model":"mock","messages":[{"role":"user","content":' + content + b"}]}"


def _body_of(content: Callable[[], bytes]) -> Callable[[], Run]:
    return lambda: _chats(_content(content()))


def _lists() -> bytes:
    return b"[" + b"[]," * 10_000_000 + b"[]]"


def _parts() -> bytes:
    return b"[" + b'{"type":"text","text":"x"},' * 1_000_000 + b'{"type":"text","text":"x"}]'


def _nested() -> bytes:
    return b"[" * 10_000_000 + b"]" * 10_000_000


def _word() -> bytes:
    return b'"' + b"x" * (30 * MEGABYTE) + b'"'


def _words() -> bytes:
    return b'"' + b"word and then " * (2 * MEGABYTE) + b'"'


def _emoji() -> bytes:
    return b'"' + "\N{GRINNING FACE}".encode() * (6 * MEGABYTE) + b'"'


def _halves() -> bytes:
    return b'"' + rb"\ud83d" * (5 * MEGABYTE) + b'"'


def _lines() -> bytes:
    return b'"' + rb"a\n" * (10 * MEGABYTE) + b'"'


def _image() -> bytes:
    data = b"data:image/png;base64," + b"iVBORw0KGgo" * (30 * MEGABYTE // 11)
    return b'[{"type":"image_url","image_url":{"url":"' + data + b'"}}]'


def _many_messages() -> Run:
    message = b'{"role":"user","content":"x"},'
    return _chats(b'{"model":"mock","messages":[' + message * 1_000_000 + message[:-1] + b"]}")


def _many_calls() -> Run:
    call = b'{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}},'
    calls = b"[" + call * 400_000 + call[:-1] + b"]"
    message = b'{"role":"assistant","content":null,"tool_calls":' + calls + b"}"
    return _chats(b'{"model":"mock","messages":[{"role":"user","content":"x"},' + message + b"]}")


def _import() -> Run:
    """One conversation of two million short messages, 67 MB."""
    message = b'{"role":"user","content":"hello"},'
    body = b"[" + message * 2_000_000 + message[:-1] + b"]"
    return lambda attacker: attacker.ask("POST", "/memory/v1/import?session=attack", body)


def _long_conversation() -> Run:
    """One conversation of 49,000 messages."""
    message = b'{"role":"user","content":"hello"},'
    body = b"[" + message * 49_000 + message[:-1] + b"]"
    return lambda attacker: attacker.ask("POST", "/memory/v1/import?session=attack", body)


def _many_sessions() -> Run:
    """An import of twenty thousand conversations."""
    talk = json.dumps({"messages": [user("I live in Lisbon."), assistant("Noted.")]}).encode()
    body = (talk + b"\n") * 20_000
    return lambda attacker: attacker.ask("POST", "/memory/v1/import", body)


def _answered(kind: str, times: int = 1) -> Callable[[], Run]:
    """Chats that the upstream answers in an evil way."""
    body = messages_body([user("hello")])
    return lambda: _chats(*[body] * times, x_bench_answer=kind)


def _large_session(messages: int, megabytes: int) -> Run:
    """Messages of so many MB, then what an owner may do with such a session.  Of more than 8 MB no
    text is recorded."""
    message = messages_body([user("y " * (megabytes * MEGABYTE // 2))])

    def run(attacker: Attacker) -> None:
        for _ in range(messages):
            attacker.chat("attack", message)
        session = "/memory/v1/sessions/attack"
        attacker.ask("GET", f"{session}/messages")
        attacker.chat("attack", messages_body([user("a"), assistant("b"), user("c")]))
        attacker.ask("POST", f"{session}/fork", b'{"id": "other"}')
        attacker.ask("POST", f"{session}/context", messages_body([user("what was said?")]))
        attacker.ask("DELETE", session)

    return run


def _crowd() -> Run:
    """Thousands of people, each in a session of their own."""
    body = messages_body([user("I live in Lisbon and I like tea.")])

    def run(attacker: Attacker) -> None:
        for n in range(3_000):
            attacker.chat(f"crowd-{n}", body, x_user_id=f"person-{n}")
        attacker.statuses = [f"{len(attacker.statuses)} chats"]

    return run


def _side_by_side(clients: int) -> Callable[[], Run]:
    """Clients that bring a long history each, over and over."""

    def build() -> Run:
        body = messages_body(user(f"m{n}") for n in range(11_900))

        def run(attacker: Attacker) -> None:
            sessions = [f"attack-{n}" for n in range(4 * clients)]
            with ThreadPoolExecutor(clients) as pool:
                list(pool.map(lambda session: attacker.chat(session, body), sessions))

        return run

    return build


def _imports_at_once(clients: int) -> Run:
    """The same conversation of 49,000 messages from each."""
    act = _long_conversation()

    def run(attacker: Attacker) -> None:
        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(act, [attacker] * clients))

    return run


def _without_an_end(clients: int, megabytes: int) -> Run:
    """Bodies of which all but a little arrives."""
    body = messages_body([user("y " * (megabytes * MEGABYTE // 2))])
    begun = chat_head("attack", len(body)) + body[:-MEGABYTE]

    def pieces() -> Iterator[bytes]:
        yield begun
        time.sleep(10)
        yield body[-MEGABYTE:-1]

    def run(attacker: Attacker) -> None:
        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(lambda _: attacker.raw(pieces(), 20), range(clients)))

    return run


def attacks() -> tuple[Attack, ...]:
    return (
        Attack("trailers, 300 MB", _trailers),
        Attack("one trailer, 170 MB", _endless_trailer),
        Attack("250,000 messages, then one", _then_next(250_000), 30, restarts=True),
        Attack("a session grown to 200,000", _grown(200_000), 20, restarts=True),
        Attack("a session of 200,000 taken back", _taken_back(200_000), 20),
        Attack("12 clients with 11,900 messages each", _side_by_side(12), 10),
        Attack("10,000 messages resent", _resent(5_000)),
        Attack("12,000 messages resent", _resent(5_900), 10),
        Attack("50,000 messages resent", _resent(25_000), 10),
        Attack("10,000 times the same word", _same_words(10_000)),
        Attack("2,500 calls resent", _loop(2_500, equal=False)),
        Attack("5,000 calls resent", _loop(5_000, equal=False)),
        Attack("5,000 equal calls resent", _loop(5_000, equal=True)),
        Attack("10 M lists as content", _body_of(_lists)),
        Attack("1 M parts", _body_of(_parts)),
        Attack("10 M lists nested", _body_of(_nested)),
        Attack("a word of 30 MB", _body_of(_word)),
        Attack("words of 28 MB", _body_of(_words)),
        Attack("emoji of 24 MB", _body_of(_emoji)),
        Attack("5 M half pairs", _body_of(_halves)),
        Attack("10 M lines", _body_of(_lines)),
        Attack("1 M messages", _many_messages),
        Attack("400,000 calls", _many_calls),
        Attack("import of 2 M messages", _import, 10),
        Attack("import of 49,000 messages", _long_conversation, 5),
        Attack("12 imports of 49,000 messages at once", partial(_imports_at_once, 12), 5),
        Attack("import of 20,000 sessions", _many_sessions, 5),
        Attack("an image of 30 MB", _body_of(_image)),
        Attack("gzip bomb of 2 GB", _answered("bomb")),
        Attack("gzip name of 400 MB", _answered("name")),
        Attack("event of 13.5 MB", _answered("event")),
        Attack("answer of 1 GB", _answered("plain")),
        Attack("16 messages of 25 MB", partial(_large_session, 16, 25), 5),
        Attack("60 messages of 7 MB", partial(_large_session, 60, 7), 10),
        Attack("60 bodies of 30 MB without an end", partial(_without_an_end, 60, 30), 5),
        Attack("3,000 people", _crowd),
        *DOORS,
    )
