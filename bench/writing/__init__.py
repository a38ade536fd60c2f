"""What memory costs that a model writes.  ``python -m bench writing``; see ../README.md.

``plan``      how much is measured
``words``     what a person and an assistant say to each other
``player``    what the models write that are asked for memory
``upstream``  both as a process
``profiles``  the proxy's configuration
``memory``    the memory API: what is known already, feedback, usage
``added``     what a chat request takes longer, in pairs, and the commit in it
``spent``     requests to models and tokens, for each feature
``rate``      exchanges a second
``suite``     all rows, one after another
``table``     the result as Markdown
"""
