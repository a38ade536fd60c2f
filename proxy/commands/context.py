"""``memory-proxy context``: what would be sent to the model."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from proxy.chat.tools.display import displayed_calls
from proxy.commands.command import CommandContext
from proxy.commands.output import STYLES, Object, count_of, cut, line, plain, text_of
from proxy.integrations.terms import segment


def context(
    context: CommandContext,
    session: Annotated[str, typer.Argument(help="The session's id.")],
    question: Annotated[str, typer.Argument(help="What the user would say next.")],
    profile: Annotated[str | None, typer.Option(help="One of the proxy's profiles.")] = None,
    model: Annotated[str | None, typer.Option(help="The model whose tokens are counted.")] = None,
) -> None:
    """Exactly the messages that would be sent for a question.  Changes nothing."""
    asked = [{"role": "user", "content": question}]
    fields = {"profile": profile, "model": model, "messages": asked}
    found = context.send("POST", f"/sessions/{segment(session)}/context", fields)
    if context.out.as_json:
        return context.out.print_json(found)
    _print(context, found)


def _print(context: CommandContext, found: Object) -> None:
    for message in found["messages"]:
        role = str(message.get("role"))
        context.out.console.print(Text(plain(role), style=STYLES.get(role, "bold")))
        context.out.console.print(Text("  " + "\n  ".join(_lines(message))), soft_wrap=True)
    injected, evicted = found["injected"], found["evicted"]
    context.out.note(
        f"\n{found['tokens']} tokens, {injected['tokens']} of them from memory: "
        f"{count_of(injected['messages'], 'messages')}, {injected['recalled']} recalled; "
        f"left out: {count_of(evicted['messages'], 'messages')} of {evicted['tokens']} tokens"
    )
    for one in found["recalled"]:
        context.out.note(f"  recalled {one['score']:.2f}  {cut(line(one['text']), 70)}")


def _lines(message: Object) -> list[str]:
    called = [plain(f"→ {call.name}") for call in displayed_calls(message)]
    return [*cut(plain(text_of(message))).split("\n"), *called]
