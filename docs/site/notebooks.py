"""Notebooks are kept as text (jupytext, percent format), run while the site is built, and shown with their output."""

import os
import tempfile
from pathlib import Path

import jupytext
import nbconvert
from nbclient import NotebookClient

SECONDS = 300


def rendered(source: Path) -> dict[str, str | bytes]:
    """The page of a notebook and its pictures, by their paths in the site; raises what a cell raises."""
    notebook = jupytext.read(source)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
        NotebookClient(
            notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": folder}}
        ).execute()
    text, resources = nbconvert.MarkdownExporter().from_notebook_node(
        notebook, resources={"output_files_dir": f"{source.stem}_files", "unique_key": source.stem}
    )
    page = {f"notebooks/{source.stem}.md": text}
    return page | {f"notebooks/{path}": content for path, content in resources["outputs"].items()}
