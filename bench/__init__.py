"""What the proxy costs: the project's own benchmark.  ``python -m bench``; see README.md.

``plan``       what is measured, and how often
``wire``       one HTTP connection of the load client
``upstream``   the mocked upstream, a process
``floor``      a bare pass-through to compare with, a process
``processes``  starts them, and reads their CPU time and memory
``seed``       sessions of any length, put into a store
``requests``   the bytes of the requests
``single``     one request after another, in pairs with direct ones
``streams``    many open streams
``suite``      all rows, one after another
``table``      the result as Markdown

``recall``     another bench: does the right old turn reach the prompt?
``cost``       and another: what recall costs
"""
