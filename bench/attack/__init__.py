"""What a hostile or careless tenant does to its neighbours, and what twenty busy minutes leave.

Black box: the proxy as ``memory-proxy serve`` starts it, with default settings.  Each attack gets a
proxy of its own; beside it a victim with another key chats five times a second, /healthz is asked
every twenty milliseconds and the process's memory is read.
"""
