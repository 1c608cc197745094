"""What the README and the guides show is run."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
HOME = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Source"]


def test_the_code_of_the_readme_prints_what_it_says_and_does_so_again(tmp_path, monkeypatch, capsys):
    """Trial 1.14: a second run ended in a traceback."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, flags=re.DOTALL)
    assert blocks
    for code, printed in [*blocks, *blocks]:
        exec(compile(code, "README.md", "exec"), {})
        assert capsys.readouterr().out == printed


def test_the_readme_renders_on_an_index_because_its_links_are_absolute_and_lead_somewhere():
    links = re.findall(r"\]\(([^)\s]+)\)", README)
    assert len(links) > 15
    for link in links:
        assert link.startswith("https://"), f"{link} would be broken on a package index"
        for base in (f"{HOME}/blob/main/", f"{HOME.replace('github.com', 'raw.githubusercontent.com')}/main/"):
            if link.startswith(base):
                assert (ROOT / link.removeprefix(base)).exists(), f"README.md points to {link}"


def test_the_home_of_the_project_is_the_same_everywhere():
    assert f"source: {HOME}" in (ROOT / "mkdocs.yml").read_text("utf-8")
    assert HOME in (ROOT / "CITATION.cff").read_text("utf-8")


def test_the_readme_can_be_read_in_two_minutes():
    prose = re.sub(r"```.*?```|https?:\S+|^\|.*?$", "", README, flags=re.DOTALL | re.MULTILINE)
    assert len(prose.split()) < 600


def test_the_code_of_the_labs_guide_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "lab.md").read_text("utf-8"), flags=re.DOTALL)
    exec(compile("\n".join(blocks), "docs/lab.md", "exec"), {})
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
