"""What the README and the guides show is run."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_code_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert printed.index("berlin") < printed.index("oslo") < printed.index("faulty")


def test_the_code_of_the_labs_guide_runs(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "lab.md").read_text("utf-8"), flags=re.DOTALL)
    exec(compile(block, "docs/lab.md", "exec"), {})
    assert float(capsys.readouterr().out) > 0.5


def test_every_file_the_documents_point_to_is_there():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\((?!https?:)([^)#\s]+)", prose):
            target = page.parent / link
            if target.parent.name == "notebooks":  # kept as text, and made into pages when the site is built
                target = target.with_suffix(".py")
            assert target.exists(), f"{page.name} points to {link}"


def test_the_readme_names_the_two_commands_and_make_knows_them():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in ("demo", "test"):
        assert f"make {command}" in README
        assert re.search(rf"^{command}:", makefile, flags=re.MULTILINE)
