"""Ray is an extra, and a cluster is somewhere: what is said when either is missing."""

import os
import subprocess
import sys
import time

import pytest


def python(code):
    """A process of its own: Ray keeps threads and warns as it likes."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


def test_without_ray_the_right_thing_to_install_is_said():
    code = "import sys; sys.modules['ray'] = None\nfrom fedcoast.cluster import connect\nconnect('local').__enter__()"
    done = python(code)
    assert "MissingExtra: this needs ray, which is not installed; run: pip install 'fedcoast[cluster]'" in done.stderr


def test_the_room_itself_loads_no_ray():
    assert python("import sys, fedcoast.cluster; print('ray' in sys.modules)").stdout == "False\n"


@pytest.mark.slow
def test_a_local_cluster_works_and_is_gone_afterwards():
    done = python(
        "import os\n"
        "from fedcoast.cluster import connect\n"
        "with connect('local') as ray:\n"
        "    with connect('local') as same:\n"
        "        assert same is ray\n"
        "    assert ray.is_initialized()\n"
        "    print(ray.get(ray.remote(lambda: os.getpid()).remote()) != os.getpid(), ray.cluster_resources()['CPU'])\n"
        "print(ray.is_initialized())"
    )
    assert done.stdout == f"True {float(os.cpu_count())}\nFalse\n", done.stderr


@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_an_error_in_one_line():
    began = time.monotonic()
    done = python("from fedcoast.cluster import connect\nconnect('127.0.0.1:1').__enter__()")
    assert "BadSetting: no Ray cluster can be reached at '127.0.0.1:1'" in done.stderr
    assert time.monotonic() - began < 60
