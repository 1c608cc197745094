"""Methods that compare the directions of updates."""
