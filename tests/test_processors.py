from benchmarks.processors import accuracies, gaps


def record(accuracy, value):
    slots = [
        {"row": "a", "column": "half, noise", "values": {"0": value, "1": 1.0}},
        {"row": "a", "column": "half, noise, evened", "values": {"0": value}},
        {"row": "a", "column": "whole", "values": {"0": -value}},
    ]
    return {"runs": {"twice": {"test accuracy": accuracy}, "once": {"test accuracy": [0.5]}}, "slots": slots}


OLD, NEW = record([0.25, 0.5], 1.0), record([0.5, 0.5], 0.5)


def test_runs_that_were_trained_apart_are_told_by_their_accuracy():
    assert accuracies(OLD, NEW) == {"twice": {"mean": 0.125, "most": 0.25, "last": 0.0}}


def test_how_far_a_row_moved_is_over_the_columns_asked_for_and_apart_for_what_is_evened():
    assert gaps(OLD, NEW, "half") == {
        "a": {"mean": 0.25, "most": 0.5, "numbers": 2},
        "a, evened": {"mean": 0.5, "most": 0.5, "numbers": 1},
    }
