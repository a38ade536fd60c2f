"""The Lua scripts: read from the files in scripts/, sent by their hash."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha1
from importlib.resources import files
from typing import Any

import msgspec
from redis.exceptions import NoScriptError

from proxy.memory.store import StoreError
from proxy.stores.redis.connection import Link
from proxy.stores.redis.wire import Command, raise_errors


class Script(msgspec.Struct, frozen=True):
    """A script and the hash that Redis knows it by."""

    text: str
    digest: str


def read_script(name: str, *preludes: str) -> Script:
    """The script ``name``.lua, with other files in front of it."""
    folder = files("proxy.stores.redis") / "scripts"
    parts = [(folder / f"{part}.lua").read_text("utf-8") for part in (*preludes, name)]
    text = "\n".join(parts)
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


class Scripts:
    """All scripts, and how one is run.

    With ``wait_replicas`` writes wait until so many replicas have them, at most ``wait_seconds``:
    on the same connection, since WAIT is about the writes of its own connection.
    """

    load = read_script("load", "prelude")
    load_more = read_script("load_more", "prelude")
    load_choices = read_script("load_choices", "prelude")
    messages = read_script("messages", "prelude", "page_prelude")
    unindexed = read_script("unindexed", "prelude", "page_prelude")
    exchanges = read_script("exchanges", "prelude")
    _changing = ("prelude", "summary_prelude", "changes_prelude")
    commit = read_script("commit", *_changing, "marks", "lists", "work_prelude")
    undo_commit = read_script("undo_commit", *_changing, "removal_prelude")
    revise = read_script("revise", *_changing, "edit_prelude", "removal_prelude")
    restore_fill = read_script("restore_fill", "prelude")
    restore = read_script("restore", "prelude", "marks", "lists")
    restore_keep = read_script("restore_keep", "prelude")
    amend = read_script("amend", *_changing, "edit_prelude")
    touch = read_script("touch", "marks", "lists")
    relist = read_script("relist", "lists")
    forget = read_script("forget", "lists")
    mark = read_script("mark")
    unmark = read_script("unmark", "marks")
    dump = read_script("dump", "prelude")
    adopt = read_script("adopt", "prelude")
    discard = read_script("discard", "prelude")
    passages = read_script("passages", "prelude")
    summary_put = read_script("summary_put", "prelude", "marks")
    summary_drop = read_script("summary_drop", "prelude")
    summary_stall = read_script("summary_stall", "prelude")
    work_enqueue = read_script("work_enqueue", "work_prelude")
    work_claim = read_script("work_claim", "work_prelude")
    work_extend = read_script("work_extend", "work_prelude")
    work_finish = read_script("work_finish", "work_prelude")
    work_postpone = read_script("work_postpone", "work_prelude")
    work_forget = read_script("work_forget")
    work_drop_lost = read_script("work_drop_lost")
    index_lookup = read_script("index_lookup", "index_prelude")
    index_whole = read_script("index_whole", "index_prelude")
    index_rows = read_script("index_rows", "index_prelude")
    index_write = read_script("index_write", "index_prelude")
    index_renew = read_script("index_renew", "index_prelude")
    index_sweep = read_script("index_sweep", "index_prelude")
    index_drop = read_script("index_drop", "index_prelude")
    index_forget = read_script("index_forget", "index_prelude")
    index_vectors = read_script("index_vectors", "index_prelude")
    items_page = read_script("items_page", "items_prelude")
    items_relist = read_script("items_relist", "items_prelude")
    items_namespaces = read_script("items_namespaces", "items_prelude")
    items_change = read_script("items_change", "items_prelude", "marks")
    items_fill = read_script("items_fill", "items_prelude", "marks")
    items_drop = read_script("items_drop", "items_prelude")
    items_adopt = read_script("items_adopt", "items_prelude")
    items_leave = read_script("items_leave", "items_prelude")
    usage_adopt = read_script("usage_adopt")
    check_commands = read_script("check_commands")
    peek = read_script("peek")

    def __init__(self, link: Link, wait_replicas: int, wait_seconds: float) -> None:
        self._link = link
        self._replicas = wait_replicas
        self._wait: tuple[Command, ...] = (
            (("WAIT", wait_replicas, max(1, int(wait_seconds * 1000))),) if wait_replicas else ()
        )

    async def read(self, script: Script, keys: Sequence[bytes], arguments: Sequence[Any]) -> Any:
        return await self._run(script, keys, arguments, ())

    async def many(
        self, script: Script, calls: Sequence[tuple[Sequence[bytes], Sequence[Any]]]
    ) -> list[Any]:
        """Run a reading script for several sessions; ``calls``: keys and arguments of each."""
        rests = [(len(keys), *keys, *arguments) for keys, arguments in calls]
        try:
            return await self._link.many([(r[1], ("EVALSHA", script.digest, *r)) for r in rests])
        except NoScriptError:
            return await self._link.many([(r[1], ("EVAL", script.text, *r)) for r in rests])

    async def write(self, script: Script, keys: Sequence[bytes], arguments: Sequence[Any]) -> Any:
        """Raises StoreError if too few replicas have the write in time: it may still be lost."""
        return await self._run(script, keys, arguments, self._wait)

    async def put_all(self, commands: Sequence[tuple[bytes, Command]]) -> None:
        """As :meth:`write`, for plain commands with any keys.

        Each server gets all its commands before the WAITs, so that the first WAIT covers them all.
        """
        waiting = [(key, wait) for key, _ in commands for wait in self._wait]
        replies = await self._link.many([*commands, *waiting])
        self._check(replies[len(commands) :])

    async def _run(
        self,
        script: Script,
        keys: Sequence[bytes],
        arguments: Sequence[Any],
        wait: tuple[Command, ...],
    ) -> Any:
        rest = (len(keys), *keys, *arguments)
        replies = await self._link.run(keys[0], ("EVALSHA", script.digest, *rest), *wait)
        if isinstance(replies[0], NoScriptError):
            # The server was started or promoted, or its scripts were flushed.  A second wait for
            # missing replicas would exceed the timeout, hence the check before it.
            self._check(replies[1:])
            replies = await self._link.run(keys[0], ("EVAL", script.text, *rest), *wait)
        self._check(raise_errors(replies)[1:])
        return replies[0]

    def _check(self, waited: Sequence[Any]) -> None:
        for count in waited:
            # A replica replies to WAIT with an error; that of the command itself says more.
            if isinstance(count, int) and count < self._replicas:
                raise StoreError(f"{count} of {self._replicas} replicas have the commit")
