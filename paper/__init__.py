"""Reproduction of the paper's six tables: trainings, methods, and our numbers beside the published ones."""
