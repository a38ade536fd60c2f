"""An OpenAI-compatible streaming reverse proxy that gives chat applications memory."""

__version__ = "0.1.0"
