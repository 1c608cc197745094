"""Docstrings as Markdown: the aligned columns in which options are described become lists."""

import re

import griffe

OPTION = re.compile(r"^(?P<names>[\w*]+(?:, [\w*]+)*) {2,}(?P<words>\S.*)$")


HEADER = re.compile(r"^(Paper|Needs|Cost|Deviations|Code): ")


class OptionsAsLists(griffe.Extension):
    """`keep   the share that votes` becomes `- **keep**: the share that votes`."""

    def on_object(self, *, obj: griffe.Object, **unused: object) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    lines: list[str] = []
    in_list = False
    for line in text.expandtabs().splitlines():
        if HEADER.match(line):  # the parts of a method's header, each a paragraph of its own
            lines.append("")
            line = HEADER.sub(r"**\1**: ", line)
        if found := OPTION.match(line):
            if not in_list and lines and lines[-1]:
                lines.append("")
            lines.append(f"- **{found['names']}**: {found['words']}")
            in_list = True
        elif in_list and line.startswith("  ") and line.strip():
            lines.append(f"  {line.strip()}")
        else:
            if in_list and line.strip():
                lines.append("")
            in_list = False
            lines.append(line)
    return "\n".join(lines)
