"""Flower is an extra: everything else works without it, and asking for it says what to install."""

import subprocess
import sys

import fedcoast.integrations.flower

WITHOUT = "import sys; sys.modules['flwr'] = None\n"


def run(code):
    return subprocess.run([sys.executable, "-c", WITHOUT + code], capture_output=True, text=True, timeout=60)


def test_fedcoast_does_not_need_flower():
    done = run("import fedcoast, fedcoast.cli; print(fedcoast.CoAst().method)")
    assert (done.returncode, done.stdout.strip()) == (0, "coast"), done.stderr


def test_without_flower_the_right_thing_to_install_is_said():
    done = run("import fedcoast.integrations.flower")
    assert "MissingExtra: this needs flwr, which is not installed; run: pip install 'fedcoast[flower]'" in done.stderr


def test_fedcoast_alone_does_not_load_flower():
    code = "import sys, fedcoast; print([name for name in sys.modules if name.startswith('flwr')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_public_names_are_these():
    assert sorted(fedcoast.integrations.flower.__all__) == [
        "BallotUpload",
        "Identity",
        "Observed",
        "Peer",
        "TernaryFedAvg",
        "drop_negative",
        "identity_mod",
        "resumed",
        "watch",
    ]
    assert all(hasattr(fedcoast.integrations.flower, name) for name in fedcoast.integrations.flower.__all__)
