"""What a conversation costs where upstreams cache prompts: with memory and without, and with marks.

``rules``     what providers say of their caches, as functions of prompts
``prompt``    a request's body as the blocks that a cache sees
``upstream``  answers, and says what it has read and written
``talk``      the conversation, in each API
``suite``     all rows, one after another
``table``     the result as Markdown
"""
