"""Reports: an assessment with its uncertainty and shares as a page, text, tables and a live view."""
