"""Ray is an extra, and a cluster may be unreachable: the errors when either is missing."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace

import pytest

from fedcoast import BadSetting
from fedcoast.integrations.ray import connection
from integrations.ray.test_on_ray import ancestors


def python(code):
    """A process of its own: Ray keeps threads and warns as it likes."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


def test_without_ray_the_error_names_the_extra_to_install():
    hide = "import sys; sys.modules['ray'] = None\n"
    code = hide + "from fedcoast.integrations.ray import connect\nconnect('local').__enter__()"
    done = python(code)
    assert "MissingExtra: this needs ray, which is not installed; run: pip install 'fedcoast[cluster]'" in done.stderr


def test_the_command_line_says_it_in_one_line_too(tmp_path):
    code = (
        "import sys; sys.modules['ray'] = None\n"
        f"sys.argv = ['fedcoast', 'assess', {str(tmp_path)!r}, '--ray', 'local']\n"
        "from fedcoast.cli import main\nmain()"
    )
    done = python(code)
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr == "fedcoast: this needs ray, which is not installed; run: pip install 'fedcoast[cluster]'\n"


def test_the_room_itself_loads_no_ray():
    assert python("import sys, fedcoast.integrations.ray; print('ray' in sys.modules)").stdout == "False\n"


@pytest.mark.slow
def test_a_local_cluster_works_and_is_gone_afterwards():
    done = python(
        "import os\n"
        "from fedcoast.integrations.ray import connect\n"
        "with connect('local') as ray:\n"
        "    with connect('local') as same:\n"
        "        assert same is ray\n"
        "    assert ray.is_initialized()\n"
        "    elsewhere = ray.get(ray.remote(lambda: os.getpid()).remote()) != os.getpid()\n"
        "    print('printed meanwhile')\n"
        "    cores = ray.cluster_resources()['CPU']\n"
        "print(elsewhere, cores, ray.is_initialized())"
    )
    assert done.stdout == f"True {float(os.cpu_count())} False\n", done.stderr
    assert "printed meanwhile" in done.stderr


@pytest.mark.slow
def test_a_local_cluster_can_be_reached_from_this_machine_alone():
    code = (
        "import os\n"
        "from fedcoast.integrations.ray import connect\n"
        "with connect('local') as ray:\n"
        "    ray.get(ray.remote(lambda: os.getpid()).remote())\n"
        "    os.write(1, b'at work\\n')\n"
        "    input()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], text=True, **pipes) as started:
        line, open_to = started.stdout.readline(), listening(started.pid)
        _, err = started.communicate("\n", timeout=60)
    assert (line, started.returncode) == ("at work\n", 0), err
    assert len(open_to) >= 3, "the cluster's own ports were not found"
    assert [str(address) for address in open_to if not address.is_loopback] == []


def test_a_ray_that_opens_a_local_cluster_to_others_is_stopped_at_once():
    calls = []
    ray = SimpleNamespace(
        __version__="9.9",
        init=lambda **options: calls.append(f"started at {options['address']}"),
        shutdown=lambda: calls.append("stopped"),
        util=SimpleNamespace(get_node_ip_address=lambda: "192.0.2.7"),
    )
    with pytest.raises(BadSetting, match=r"Ray 9\.9 would open a local cluster to other machines, at 192\.0\.2\.7"):
        connection._join(ray, "local")
    assert calls == ["started at local", "stopped"]
    connection._join(ray, "auto")
    assert calls[2:] == ["started at auto"]


def test_the_loopback_setting_is_not_left_in_the_environment(monkeypatch):
    monkeypatch.delenv(connection.LOOPBACK_ONLY, raising=False)
    monkeypatch.setattr(connection, "require", lambda name, extra: os.environ.get(connection.LOOPBACK_ONLY))
    assert connection._import_ray("local") == "0"
    assert connection._import_ray("10.0.0.1:6379") is None
    assert connection.LOOPBACK_ONLY not in os.environ


@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_an_error_in_one_line():
    began = time.monotonic()
    done = python("from fedcoast.integrations.ray import connect\nconnect('127.0.0.1:1').__enter__()")
    assert "BadSetting: no Ray cluster can be reached at '127.0.0.1:1'" in done.stderr
    assert time.monotonic() - began < 60


def listening(pid):
    """The addresses at which a process and all that came from it wait for others, as Linux tells."""
    sockets = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for row in Path(table).read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = row.split()[:10]
            if state == "0A":
                sockets[f"socket:[{inode}]"] = address_of(local.partition(":")[0])
    ports = set()
    for process in Path("/proc").glob("[0-9]*"):
        if pid in (int(process.name), *ancestors(int(process.name))):
            ports.update(targets(process / "fd"))
    return [sockets[name] for name in ports & sockets.keys()]


def address_of(text):
    """From words of four bytes, each from its end."""
    words = [bytes.fromhex(text[at : at + 8])[::-1] for at in range(0, len(text), 8)]
    address = ip_address(b"".join(words))
    return getattr(address, "ipv4_mapped", None) or address


def targets(folder):
    with suppress(OSError):  # the process has ended meanwhile
        for entry in folder.iterdir():
            with suppress(OSError):  # or closed this one
                yield str(entry.readlink())
