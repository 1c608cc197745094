"""`fedcoast verify` and `fedcoast sign`: is a run what was recorded, and do answers and reports follow from it?"""

import json as form
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from fedcoast.audit import Verification, signing
from fedcoast.audit import verify as audit
from fedcoast.cli.run_checks import FAILED
from fedcoast.cli.screen import out
from fedcoast.errors import BadSetting, printable

Files = list[Path] | None


def verify(
    run: Annotated[Path, typer.Argument(help="A recorded run.", show_default=False)],
    report: Annotated[Files, typer.Option(help="A report of this run, HTML or JSON; may be repeated.")] = None,
    answer: Annotated[Files, typer.Option(help="An answer of `fedcoast assess --json`; may be repeated.")] = None,
    state: Annotated[Files, typer.Option(help="A saved assessor (its ledger), NAME.state; may be repeated.")] = None,
    head: Annotated[str | None, typer.Option(help="A head noted earlier: the chain must pass through it.")] = None,
    public_key: Annotated[Path | None, typer.Option(help="The key that the run's head was signed with.")] = None,
    signed: Annotated[Path | None, typer.Option(help="The signed head (default: RUN.signed.json).")] = None,
    certificate: Annotated[Path | None, typer.Option(help="A certificate to check with the public key.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
) -> None:
    """Recompute every hash of a run and the scores behind its reports, answers and ledgers; list what differs.

    RUN is a recorded run. Example: fedcoast verify runs/demo --report report.html
    """
    heads = [*([head] if head else []), *_signed_heads(run, public_key, signed, certificate)]
    found = audit(run, [*(report or ()), *(answer or ()), *(state or ())], heads)
    if json:
        typer.echo(form.dumps(found.to_json(), indent=1))
    else:
        for line in _lines(found):
            out().print(Text(printable(line)), soft_wrap=True)
    if not found.agrees:
        raise typer.Exit(FAILED)


def sign(
    run: Annotated[Path | None, typer.Argument(help="A recorded run.", show_default=False)] = None,
    key: Annotated[Path | None, typer.Option(help="Your private key (Ed25519, PEM), outside of the run.")] = None,
    new_key: Annotated[Path | None, typer.Option(help="Create a private key in FILE, and FILE.pub beside it.")] = None,
    file: Annotated[
        Path | None, typer.Option("--out", "-o", help="The signed head (default: RUN.signed.json).")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="Write a signed page that says what was verified.")] = None,
    report: Annotated[Files, typer.Option(help="A report to verify and certify; may be repeated.")] = None,
    answer: Annotated[Files, typer.Option(help="An answer to verify and certify; may be repeated.")] = None,
    head: Annotated[str | None, typer.Option(help="A head noted earlier: the chain must pass through it.")] = None,
) -> None:
    """Verify a run and sign its head. Nobody without your key can then sign another history.

    RUN is a recorded run. Share the signed head; `fedcoast verify --public-key` checks it. Example: fedcoast sign
    runs/demo --key ~/audit.key
    """
    if new_key is not None:
        typer.echo(printable(signing.new_key(new_key)))
        if run is None:
            return
    key = key or new_key
    if run is None or key is None:
        raise BadSetting("name the run to sign and a private key (--key FILE; --new-key FILE makes one)")
    found = audit(run, [*(report or ()), *(answer or ())], head)
    if not found.agrees:
        for line in _lines(found):
            out().print(Text(printable(line)), soft_wrap=True)
        raise typer.Exit(FAILED)
    target = file or signing.signed_file(run)
    signing.sign_head(found, key, target)
    typer.echo(printable(target))
    if certificate is not None:
        signing.write_certificate(found, key, certificate)
        typer.echo(printable(certificate))


def _signed_heads(run: Path, public_key: Path | None, signed: Path | None, certificate: Path | None) -> list[str]:
    if public_key is None:
        if signed is not None or certificate is not None:
            raise BadSetting("--signed and --certificate need the key they were signed with (--public-key FILE)")
        return []
    if certificate is not None and signed is None:
        return [signing.read_certificate(certificate, public_key)]
    heads = [signing.read_signed_head(signed or signing.signed_file(run), public_key)]
    return heads if certificate is None else [*heads, signing.read_certificate(certificate, public_key)]


def _lines(found: Verification) -> list[str]:
    lines = [f"DIFFERS: {finding}" for finding in found.findings]
    if found.uncovered:
        lines.append(_uncovered(found))
    lines += [f"agrees: {sentence}" for sentence in found.confirmed]
    lines += [f"missed by the recorder: round {number} ({why})" for number, why in found.missed.items()]
    lines += [f"not checked: {what}" for what in found.unchecked]
    lines += [f"outside of the chain: {path} ({why})" for path, why in found.outside.items()]
    if found.head is not None:
        where = "before the first round" if found.last_round is None else f"after round {found.last_round}"
        lines.append(f"head {where}: {found.head}")
    if found.agrees:
        size = f"{found.rounds:,} rounds, {found.files:,} files, {found.bytes:,} bytes"
        if found.anchored:
            lines.append(f"{found.folder} is as it was recorded: {size}.")
        else:
            lines.append(
                f"{found.folder} is consistent: {size}. No head from elsewhere was given (--head,"
                " --public-key), so removed last rounds or a rewritten chain would go unnoticed."
            )
    else:
        count = len(found.findings)
        why = f": {count} difference{'s' * (count > 1)}" if count else ""
        if found.unchecked and not count:
            why = " in full: nothing was changed, but the files named above cannot be checked"
        lines.append(f"{found.folder} could not be verified{why}.")
    return lines


def _uncovered(found: Verification) -> str:
    if len(found.uncovered) == found.rounds:
        return "This run has no chain: an earlier fedcoast recorded it. Its rounds cannot be checked."
    first, last = found.uncovered[0], found.uncovered[-1]
    return f"Rounds {first} to {last} were recorded before the chain began, and nothing covers them."
