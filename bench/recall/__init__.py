"""Does the right old turn reach the prompt?  ``python -m bench.recall``; see ../README.md.

``people``    recorded conversations with questions
``datasets``  the sets of them that can be read, each as its authors publish it
``presence``  is a turn in a text, and what share of a question's evidence is
``upstream``  the scripted upstream: recorded answers, and the prompts that arrive
``counting``  tokens of a text
``drive``     conversations replayed through the running proxy, then the questions
``report``    the result as a table, and as one line of JSON
``results``   the result as it is kept, with commit and date
"""
