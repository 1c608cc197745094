"""The paper's six tables, made again: what to train, what to ask, what came out beside what was published."""
