"""Tasks: together they have the rows of one run."""

import json
import pickle
import subprocess

import pytest
from conftest import rotate

import gannet
from gannet.tasks import Task

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def rotated(tmp_path):
    return rotate(tmp_path)


def rows(tables):
    """All rows of some tables of a log, in one order."""
    table = pa.concat_tables(tables)
    return sorted((json.dumps(row, default=str) for row in table.to_pylist()))


@pytest.mark.parametrize("tasks", [1, 2, 7])
def test_tasks_have_the_rows_of_one_run(rotated, tasks):
    planned = gannet.plan(rotated, tasks)
    assert len(planned) == tasks
    whole = gannet.read(rotated, logs=planned[0].logs).to_arrow()
    parts = [pickle.loads(pickle.dumps(task)).to_arrow() for task in planned]
    for log, table in whole.items():
        assert rows([part[log] for part in parts]) == rows([table]), log
    # A task that runs again returns the same.
    assert planned[0].to_arrow() == parts[0]


def test_what_cannot_be_divided_is_refused(rotated):
    with pytest.raises(ValueError, match="known_hosts.log cannot be divided"):
        gannet.plan(rotated, logs=["conn", "known_hosts"])
    assert "weird" in gannet.plan(rotated).left_out
    with pytest.raises(TypeError):
        gannet.plan(b"bytes")


def test_a_capture_that_changed_is_refused(rotated):
    task = gannet.plan(rotated)[0]
    with open(task.files[0], "ab") as file:
        file.write(b"more")
    with pytest.raises(ValueError, match="plan again"):
        task.to_arrow()


def test_urls_are_fetched_where_the_task_runs(rotated):
    fsspec = pytest.importorskip("fsspec")
    for path in rotated.iterdir():
        with fsspec.open(f"memory://rotated/{path.name}", "wb") as file:
            file.write(path.read_bytes())
    planned = gannet.plan("memory://rotated/*.pcap", logs=["conn"])
    assert planned[0].files[0].startswith("memory://")
    whole = gannet.read(rotated, logs=["conn"])["conn"].to_arrow()
    assert rows([task.to_arrow()["conn"] for task in planned]) == rows([whole])


def test_the_command_plans_and_runs_the_same_tasks(command, rotated, tmp_path_factory):
    done = subprocess.run(
        [command, "plan", "--json", "--tasks", "3", rotated], capture_output=True, check=True
    )
    values = json.loads(done.stdout)
    assert [Task(value) for value in values["tasks"]] == list(gannet.plan(str(rotated), 3))
    out = tmp_path_factory.mktemp("tasks")
    plan = out / "plan.json"
    plan.write_bytes(done.stdout)
    lines = []
    for i in range(3):
        args = [command, "run-task", plan, str(i), "--format", "json", "-o", out / str(i)]
        subprocess.run(args, check=True)
        lines += (out / str(i) / "dns.log").read_text().splitlines() if (out / str(i) / "dns.log").exists() else []
    whole = subprocess.run(
        [command, "analyze", "--json", "--logs", "dns", "-o", "-", rotated],
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(lines) == sorted(whole.stdout.splitlines())
