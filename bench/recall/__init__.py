"""Does the right old turn reach the prompt?  ``python -m bench.recall``; see ../README.md.

``people``    recorded conversations with questions, and our JSONL form of them
``locomo``    the same from LoCoMo's own JSON
``presence``  is a turn in a text, and what share of a question's evidence is
``upstream``  the scripted upstream: recorded answers, and the prompts that arrive
``counting``  tokens of a text
``drive``     conversations replayed through the running proxy, then the questions
``report``    the result as a table, and as one line of JSON
"""
