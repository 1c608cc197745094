"""Five sites learn to read digits together."""
