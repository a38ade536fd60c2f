"""Several upstreams: which of them a request goes to, with which headers, and their models.

Where only [upstream] is set nothing here exists.
"""
