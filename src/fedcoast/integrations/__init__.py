"""Integrations: frameworks, trackers and clusters that fedcoast works with."""
