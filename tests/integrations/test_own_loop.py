"""The guide to one's own loop is run as it is printed."""

import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "own-loop.md"


def test_the_code_of_the_guide_runs_and_ranks_as_it_says(capsys):
    with_hub, without = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), flags=re.DOTALL)
    names = {}
    exec(compile(with_hub, GUIDE.name, "exec"), names)
    answer = names["coast"].assessment()
    assert list(answer.ranking) == ["oslo", "lima", "rider"]
    assert answer.scores["rider"] == 0
    assert names["hub"].unobserved == {}
    assert "oslo" in capsys.readouterr().out
    exec(compile(without, GUIDE.name, "exec"), {})
    assert capsys.readouterr().out.strip() == "(1,)"
