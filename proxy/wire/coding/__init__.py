"""Content codings (RFC 9110 8.4): what is compressed, made plain within bounds."""
