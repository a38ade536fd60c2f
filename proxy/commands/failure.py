"""The errors of commands: one sentence, and an exit status that scripts can distinguish."""

from __future__ import annotations

import re

from proxy.integrations.terms import (
    NO_ANSWER_OF_OURS,
    UNREACHABLE,
    MemoryProxyError,
    NoAnswerInTime,
)

FAILED, USAGE, NOT_FOUND, NOT_ALLOWED, CONFLICT, INTERRUPTED = 1, 2, 3, 4, 5, 130

_BY_STATUS = {
    400: USAGE,
    401: NOT_ALLOWED,
    403: NOT_ALLOWED,
    404: NOT_FOUND,
    409: CONFLICT,
    412: CONFLICT,
    422: CONFLICT,
}

_PARAMETER = re.compile(r"\?(format|kind|session|state|tenant|user)=")


class CommandError(Exception):
    """``status`` is the exit status of the program."""

    def __init__(self, sentence: str, status: int = FAILED) -> None:
        super().__init__(sentence)
        self.sentence, self.status = sentence, status


def command_error(error: MemoryProxyError) -> CommandError:
    """An error of the memory API as that of a command."""
    if isinstance(error, NoAnswerInTime):
        return CommandError(error.message)
    if error.code == UNREACHABLE:
        hint = "Start the proxy, name another with --url, or use --store to work without one."
        return CommandError(f"{error.message} {hint}")
    if error.code == NO_ANSWER_OF_OURS:  # what another server means by its status is not ours
        return CommandError(f"{error.message} Name the proxy with --url.")
    if error.status == 401:
        hint = (
            "Put the key into MEMORY_PROXY_KEY, or the administrator's into MEMORY_PROXY_ADMIN_KEY."
        )
        return CommandError(f"{error.message} {hint}", NOT_ALLOWED)
    # Where the API speaks of a parameter of its own there is an option of that name.
    message = _PARAMETER.sub(r"--\1", error.message)
    message = message.replace("GET /memory/v1/tenants", "memory-proxy tenants list")
    sentence = f"{message} ({error.code})"
    return CommandError(sentence, _BY_STATUS.get(error.status or 0, FAILED))
