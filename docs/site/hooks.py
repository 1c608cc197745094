"""What MkDocs does not do by itself: pages made from the code, and links that leave docs/."""

import os
import re
from pathlib import Path

import generated
import notebooks
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
LINK_UP = re.compile(r"(?<=\]\()(\.\./[^)#\s]+)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put a page for each method below the table of methods."""
    reference = next(entry["Reference"] for entry in config.nav if "Reference" in entry)
    position = reference.index({"Methods": "methods.md"})
    pages = [{title: path} for path, title in generated.method_pages()]
    reference[position] = {"Methods": ["methods.md", *pages]}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made from the code, and run the notebooks."""
    for path, text in generated.pages().items():
        files.append(File.generated(config, path, content=text))
    for source in sorted((ROOT / "docs" / "notebooks").glob("*.py")):
        for path, content in notebooks.rendered(source).items():
            files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to files beside docs/ (results, examples, source) point to the repository."""
    folder = Path(config.docs_dir, page.file.src_uri).parent

    def outside(found: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / found[1]))
        if target.is_relative_to(config.docs_dir):
            return found[1]
        if not target.exists():
            raise PluginError(f"{page.file.src_uri} links to {found[1]}, which does not exist")
        kind = "tree" if target.is_dir() else "blob"
        return f"{config.extra['source']}/{kind}/main/{target.relative_to(ROOT).as_posix()}"

    return LINK_UP.sub(outside, markdown)
