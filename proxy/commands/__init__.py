"""The commands that look after memory: clients of the memory API, at a proxy or on a store."""
