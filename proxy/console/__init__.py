"""The console: a web page over the memory API, for people who look after others' memory."""
