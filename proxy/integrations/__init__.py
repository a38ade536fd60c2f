"""Memory for other frameworks, over the proxy's memory API; each needs the extra of its name."""
