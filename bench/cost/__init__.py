"""What recall costs.  ``python -m bench recall``; see ../README.md.

``plan``    how much is measured
``text``    made text with the statistics of talk
``fill``    histories and indexes of any size, put into a store
``asking``  the time of questions, and of indexing what was just said
``space``   the room that a store takes
``added``   what recall adds to a chat request, in pairs with requests without it
``suite``   all rows, one after another
``table``   the result as Markdown
"""
