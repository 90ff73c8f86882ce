"""Tasks: together they return the rows of a single run."""

import json
import os
import pickle
import struct
import subprocess

import pytest
from conftest import captures, in_order, rotate

import gannet
from gannet.tasks import Task

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def rotated(tmp_path):
    return rotate(tmp_path)


def rows(tables):
    """Returns the sorted rows of several tables of a log."""
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
    # A task returns the same rows when it runs again.
    assert planned[0].to_arrow() == parts[0]


@pytest.mark.parametrize(
    "wrong", [{"tasks": 0}, {"tasks": -1}, {"tasks": 2**32}, {"warm_up": -1}, {"planners": 0}]
)
def test_numbers_out_of_range_are_refused(sample, wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name} must be a number"):
        gannet.plan(sample, **wrong)


def test_a_plan_takes_no_options_of_its_runs(sample):
    (task,) = gannet.plan(sample, logs=["dns"])
    for wrong in [{"threads": 2}, {"batch_rows": 10}]:
        with pytest.raises(TypeError, match="Task.run"):
            gannet.plan(sample, **wrong)
    for wrong in [{"threads": 0}, {"threads": 256}, {"batch_rows": 0}]:
        with pytest.raises(ValueError, match="must be a number"):
            list(task.run(**wrong))
    assert sum(len(batch) for batch in task.run(threads=2, batch_rows=1)) == 4


#: Larger captures of the corpus are skipped.
MAX_CAPTURE_BYTES = 1 << 20


@pytest.fixture(scope="module")
def joined(tmp_path_factory):
    """The captures of the corpus, concatenated a second apart and divided into seven files of equal packet counts."""
    packets, clock = [], 1_700_000_000_000_000_000
    for capture in captures():
        if os.path.getsize(capture) > MAX_CAPTURE_BYTES:
            continue
        some = []
        try:
            some.extend(p for p in gannet.filter("", capture, errors="keep") if p.link_type == 1)
        except Exception:
            continue
        if not some:
            continue
        first = min(packet.time_ns for packet in some)
        span = max(packet.time_ns for packet in some) - first
        # In some captures, one time is decades from the others.
        if span < 86_400 * 10**9:
            packets += [(clock + packet.time_ns - first, packet) for packet in some]
            clock += span + 10**9
    if not packets:
        pytest.skip("no captures: GANNET_SHARED names their folder")
    packets.sort(key=lambda one: one[0])
    folder = tmp_path_factory.mktemp("joined")
    for i in range(7):
        with open(folder / f"{i:04}.pcap", "wb") as file:
            # pcap header: nanosecond times, Ethernet.
            file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 1))
            for time, packet in packets[len(packets) * i // 7 : len(packets) * (i + 1) // 7]:
                seconds, rest = divmod(time, 10**9)
                file.write(struct.pack("<IIII", seconds, rest, len(packet.data), packet.wire_len))
                file.write(packet.data)
    return folder


@pytest.mark.parametrize("tasks", [1, 2, 7])
def test_tasks_have_the_rows_of_one_run_of_the_corpus(joined, tasks, capsys):
    planned = gannet.plan(joined, tasks)
    assert len(planned) == tasks
    whole = gannet.read(joined, logs=planned[0].logs).to_arrow()
    parts = [task.to_arrow() for task in planned]
    count = 0
    for log, table in whole.items():
        got = pa.concat_tables([part[log] for part in parts])
        assert in_order(got.to_pylist()) == in_order(table.to_pylist()), log
        count += table.num_rows
    with capsys.disabled():
        print(f"\n{tasks} tasks: the same {count} rows of {len(whole)} logs")
    assert count > 1000


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
