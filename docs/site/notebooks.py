"""Notebooks are kept as text (jupytext, percent format), run while the site is built, and shown with their output."""

import os
import re
import tempfile
from pathlib import Path

import jupytext
import nbconvert
from nbclient import NotebookClient

SECONDS = 300
# The kernel listens on this machine alone, and warns that even so nothing is encrypted.
QUIET = ["--log-level=ERROR"]
FRAME = re.compile(r"<style scoped>.*?</style>\n?|(?<=<table) border=\"1\" class=\"dataframe\"", re.DOTALL)


def rendered(source: Path) -> dict[str, str | bytes]:
    """The page of a notebook and its pictures, by their paths in the site; raises what a cell raises."""
    notebook = jupytext.read(source)
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    with tempfile.TemporaryDirectory() as folder:
        place = {"metadata": {"path": folder}}
        client = NotebookClient(notebook, timeout=SECONDS, resources=place, extra_arguments=QUIET)
        client.execute()
    text, resources = nbconvert.MarkdownExporter().from_notebook_node(
        notebook, resources={"output_files_dir": f"{source.stem}_files", "unique_key": source.stem}
    )
    text = FRAME.sub("", text)  # data frames look like the site's own tables, and scroll where they are too wide
    page: dict[str, str | bytes] = {f"notebooks/{source.stem}.md": text}
    return page | {f"notebooks/{path}": content for path, content in resources["outputs"].items()}
