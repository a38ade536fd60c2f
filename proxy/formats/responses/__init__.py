"""OpenAI's Responses API: conversations of items instead of messages.

``items`` knows what an item is, ``chat`` what a chat message is in items and the other way round,
``reading`` and ``writing`` are about requests, ``reply`` and ``stream`` about answers.  What all of
it keeps to:

* What a model says at once, between two things that others say, is one assistant message: its
  reasoning, its words and its calls, in their order.  So is the output of a response.
* A call is whatever has a ``call_id`` and ends in ``_call``, and an output is what ends in
  ``_output``: together they are as indivisible as a tool call and its result.
* Items go back as they came.  What chat completions cannot say of them is kept beside the message
  (see ``proxy.formats.native``).
"""
