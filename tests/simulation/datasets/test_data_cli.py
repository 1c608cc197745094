import pytest

from fedcoast.errors import FedcoastError


def run(*arguments):
    from typer.testing import CliRunner

    from fedcoast.cli.data import app

    return CliRunner().invoke(app, arguments)


def test_the_list_goes_to_stdout_with_one_line_a_dataset(write):
    write.stl()
    lines = run("list").stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["digits", "ready"],
        ["cifar10", "absent"],
        ["cifar100", "absent"],
        ["stl10", "ready"],
        ["fashion-mnist", "absent"],
    ]
    assert "STL-10 layout (not STL-10)" in lines[3]


def test_another_root_can_be_named(write, tmp_path):
    write.stl()
    assert "ready" not in run("list", "--root", str(tmp_path / "other")).stdout.splitlines()[3]


def test_getting_what_comes_along_says_so():
    done = run("get", "digits")
    assert (done.exit_code, done.stdout) == (0, "digits: part of scikit-learn, nothing to fetch\n")


def test_getting_what_is_there_says_where(write):
    folder, _ = write.stl()
    assert run("get", "stl10").stdout == f"stl10: {folder}\n"


def test_check_prints_every_file_and_its_exit_code_tells(write):
    write.stl()
    done = run("check", "stl10")
    assert done.exit_code == 1
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["differs"] * 4
    assert run("check", "digits").exit_code == 0


@pytest.mark.parametrize("command", ["get", "check"])
def test_an_unknown_name_is_left_to_the_program_to_report(command):
    assert isinstance(run(command, "mnist").exception, FedcoastError)
