//! The union of the rows of all tasks equals the rows of one run, and a repeated task returns the same rows: for
//! generated traffic and for captures of the conformance corpus, which is next to the project or at `GANNET_SHARED`,
//! each split into consecutive files. A message is printed if the corpus is missing.
// Tests may unwrap and print; Clippy allows that only in functions marked as tests.
#![allow(clippy::print_stderr, clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use gannet_base::Time;
use gannet_capture::Packet;
use gannet_capture::Reader;
use gannet_capture::Stream;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use gannet_columns::pack_rows;
use gannet_log::PackedRows;
use gannet_log::RowPacker;
use gannet_task::Next;
use gannet_task::PlanOptions;
use gannet_task::Scan;
use gannet_task::Settings;
use gannet_task::Task;
use gannet_task::plan;

/// Number of files that a capture is split into.
const FILES: u64 = 7;
/// Tested numbers of tasks.
const TASKS: [u32; 3] = [1, 2, 7];
/// Maximum size of a capture of the corpus, in bytes; larger ones are left out.
const MAX_SIZE: u64 = 1 << 20;
const EVERY: usize = 5;

/// The rows of each log, sorted.
type Rows = BTreeMap<&'static str, Vec<String>>;

#[derive(Debug, Default)]
struct Received {
    rows: Rows,
    damage: Vec<String>,
}

impl Received {
    fn collect(&mut self, mut scan: Scan) {
        loop {
            match scan.next(Duration::from_secs(60)).unwrap() {
                Next::Batch(batch) => {
                    let rows = self.rows.entry(batch.log).or_default();
                    let order: Vec<_> = (0..batch.rows.num_rows()).collect();
                    let mut packer = RowPacker::default();
                    pack_rows(&batch.rows, &order, &mut packer).unwrap();
                    let text = |row: &[u8]| row.escape_ascii().to_string();
                    rows.extend(PackedRows::new(packer.rows()).map(text));
                }
                Next::Damage(error) => self.damage.push(error.to_string()),
                Next::Nothing => panic!("no rows for a minute"),
                Next::End(_) => break,
            }
        }
        self.rows.values_mut().for_each(|rows| rows.sort_unstable());
        self.damage.sort();
    }
}

fn run_whole(files: &[PathBuf], settings: &Settings) -> Received {
    let files = files.to_vec();
    let open = move || Ok(Stream::open(&files, gannet_capture::Options::default())?);
    let mut received = Received::default();
    received.collect(Scan::start(settings, open).unwrap());
    received
}

/// Splits a capture into files of about equal numbers of packets. `None` if it cannot be written as pcap.
fn split(capture: &Path, dir: &Path) -> Option<Vec<PathBuf>> {
    let packets = gannet_capture::Info::open(capture).ok()?.packets;
    let each = packets / FILES + 1;
    let mut reader = Reader::open(capture).ok()?;
    let (mut files, mut writer) = (Vec::new(), None::<Writer>);
    while let Ok(Some(batch)) = reader.next_batch() {
        for packet in &batch {
            if (packet.number - 1) % each == 0 {
                if let Some(writer) = writer.take() {
                    writer.finish().ok()?;
                }
                let path = dir.join(format!("{}.pcap", files.len()));
                writer = Some(Writer::create(&path, WriteOptions::default()).ok()?);
                files.push(path);
            }
            writer.as_mut()?.write(&packet).ok()?;
        }
    }
    writer?.finish().ok()?;
    Some(files)
}

/// Compares tasks with one run; returns the maximum number of tasks.
fn compare(files: &[PathBuf], name: &str) -> usize {
    let all = Settings { threads: NonZero::new(1), ..Settings::default() };
    let mut max_tasks = 0;
    let mut single = None::<Received>;
    for tasks in TASKS {
        let options = PlanOptions { tasks: NonZero::new(tasks), ..PlanOptions::default() };
        let plan = plan(files, &all, &options).unwrap();
        assert!(plan.tasks.len() <= tasks as usize);
        max_tasks = max_tasks.max(plan.tasks.len());
        let single = single.get_or_insert_with(|| run_whole(files, &plan.tasks[0].settings));
        let mut union = Received::default();
        for task in &plan.tasks {
            let text = task.to_json().to_string();
            let task = Task::from_json(&serde_json::from_str(&text).unwrap()).unwrap();
            union.collect(task.scan().unwrap());
        }
        assert_eq!(union.damage, single.damage, "{name}: {tasks} tasks");
        for (log, rows) in &single.rows {
            let received = union.rows.get(log).map_or(&[][..], Vec::as_slice);
            let missing = rows.iter().find(|row| received.binary_search(row).is_err());
            let extra = received.iter().find(|row| rows.binary_search(row).is_err());
            let counts = (received.len(), rows.len());
            assert!(
                received == rows,
                "{name}: {tasks} tasks: {log}: {counts:?} rows\nmissing {missing:?}\nextra {extra:?}"
            );
        }
        assert!(union.rows.keys().eq(single.rows.keys()), "{name}: {tasks} tasks: other logs");
    }
    max_tasks
}

fn folder(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("gannet-task-{name}-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    dir
}

#[test]
fn tasks_return_the_rows_of_one_run_of_generated_traffic() {
    let dir = folder("synth");
    let capture = dir.join("whole.pcap");
    let mut writer = Writer::create(&capture, WriteOptions::default()).unwrap();
    gannet_synth::traffic::mixed(400, 1).write(&mut writer).unwrap();
    writer.finish().unwrap();
    let files = split(&capture, &dir).unwrap();
    assert_eq!(files.len() as u64, FILES);
    assert_eq!(compare(&files, "mixed"), FILES as usize);
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn connections_may_be_longer_than_files_and_than_the_warm_up() {
    let dir = folder("long");
    let mut files = Vec::new();
    // Every file has 15 minutes: a packet per minute of connections that began in the first file, and connections of
    // one packet.
    for file in 0..FILES {
        let path = dir.join(format!("{file}.pcap"));
        let mut writer = Writer::create(&path, WriteOptions::default()).unwrap();
        for minute in 0..15 {
            let time = Time::from_secs(1_000_000 + (file * 15 + minute) as i64 * 60);
            for (i, port) in [1000, 1001, 2000 + (file * 15 + minute) as u16].iter().enumerate() {
                let mut data = vec![
                    0x45,
                    0,
                    0,
                    32,
                    0,
                    0,
                    0,
                    0,
                    64,
                    17,
                    0,
                    0,
                    10,
                    0,
                    0,
                    i as u8 + 1,
                    10,
                    0,
                    0,
                    9,
                ];
                data.extend_from_slice(&port.to_be_bytes());
                data.extend_from_slice(&[0x23, 0x28, 0, 12, 0, 0, 1, 2, 3, 4]);
                let packet = Packet {
                    time,
                    wire_len: data.len() as u32,
                    link_type: gannet_capture::LinkType::RAW,
                    interface: 0,
                    format: gannet_capture::Format::Pcap,
                    number: 1,
                    data: &data,
                };
                writer.write(&packet).unwrap();
            }
        }
        writer.finish().unwrap();
        files.push(path);
    }
    let settings = Settings { ignore_checksums: true, ..Settings::default() };
    let plan = plan(&files, &settings, &PlanOptions::default()).unwrap();
    assert_eq!(plan.tasks.len(), FILES as usize);
    // The warm-up of ten minutes is in the previous file.
    assert_eq!(plan.tasks[3].files.first().unwrap().path, files[2]);
    let single = run_whole(&files, &plan.tasks[0].settings);
    let mut union = Received::default();
    plan.tasks.iter().for_each(|task| union.collect(task.scan().unwrap()));
    assert!(single.rows["conn"].len() > 100);
    assert_eq!(union.rows, single.rows);
    // A repeated task has the same rows.
    let (mut first, mut second) = (Received::default(), Received::default());
    first.collect(plan.tasks[2].scan().unwrap());
    second.collect(plan.tasks[2].scan().unwrap());
    assert_eq!(first.rows, second.rows);
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn tasks_return_the_rows_of_one_run_of_the_corpus() {
    let all = gannet_synth::corpus::captures(&["conformance/captures"]);
    let work_dir = folder("corpus");
    let mut divided = 0;
    for (i, capture) in all.iter().filter(|c| fs::metadata(c).unwrap().len() < MAX_SIZE).enumerate()
    {
        let dir = work_dir.join(i.to_string());
        fs::create_dir_all(&dir).unwrap();
        if i % EVERY == 0
            && let Some(files) = split(capture, &dir)
        {
            divided += usize::from(compare(&files, &capture.display().to_string()) > 1);
        }
        fs::remove_dir_all(dir).unwrap();
    }
    assert!(divided > 20, "{divided} captures were divided");
    fs::remove_dir_all(work_dir).unwrap();
}

#[test]
fn indivisible_logs_and_changed_files_are_refused() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sample.pcap");
    let with = |logs: &[&str]| Settings {
        logs: Some(logs.iter().map(|&l| l.to_owned()).collect()),
        ..Settings::default()
    };
    let options = PlanOptions::default();
    let planned = |settings: &Settings| plan(std::slice::from_ref(&sample), settings, &options);
    let error = planned(&with(&["conn", "known_hosts"])).unwrap_err().to_string();
    assert_eq!(
        error,
        "known_hosts.log cannot be divided among tasks: its rows do not refer to connections"
    );
    assert!(planned(&with(&["nothing"])).unwrap_err().to_string().contains("no log is named"));
    let plan = planned(&Settings::default()).unwrap();
    assert!(plan.left_out.iter().any(|(log, _)| *log == "weird"));
    let mut task = plan.tasks[0].clone();
    task.files[0].bytes += 1;
    let error = task.scan().unwrap_err().to_string();
    assert!(error.ends_with("plan again"), "{error}");
}
