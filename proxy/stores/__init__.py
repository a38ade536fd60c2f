"""Where memory lives: SQLite, Redis, and a dict for tests."""
