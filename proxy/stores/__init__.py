"""Where memory lives: SQLite, in a file or in RAM, and Redis."""
