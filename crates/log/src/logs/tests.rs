//! Exact bytes of the logs of a run.

use super::*;
use gannet_base::Addr;
use gannet_base::ConnId;

crate::row! {
    /// For the tests.
    struct Sample = "sample" {
        /// Time of the row.
        ts: Time = "ts",
        /// Who.
        id: ConnId = "id",
        /// How many.
        n: Option<u64> = "n",
    }
}

fn row() -> Sample {
    let id = ConnId {
        orig_h: Addr::v4([10, 0, 0, 1]),
        orig_p: 1024,
        resp_h: Addr::v4([10, 0, 0, 2]),
        resp_p: 80,
    };
    Sample { ts: Time::from_secs(1), id, n: None }
}

fn written(format: Format, name: &str) -> String {
    let dir = std::env::temp_dir().join(format!("gannet-log-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let mut logs = Logs::new(Options { dir: Some(dir.clone()), format, ..Options::default() });
    logs.set_time(Time::from_secs(86_400));
    assert_eq!(logs.write(&row()), Cut::default());
    logs.close().unwrap();
    let text = std::fs::read_to_string(dir.join("sample.log")).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    text
}

#[test]
fn tsv_file_to_the_byte() {
    assert_eq!(
        written(Format::Tsv, "tsv"),
        "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n\
         #path\tsample\n#open\t1970-01-02-00-00-00\n\
         #fields\tts\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tn\n\
         #types\ttime\taddr\tport\taddr\tport\tcount\n\
         1.000000\t10.0.0.1\t1024\t10.0.0.2\t80\t-\n#close\t1970-01-02-00-00-00\n"
    );
}

#[test]
fn json_file_has_no_header() {
    assert_eq!(
        written(Format::Json(JsonTimes::Epoch), "json"),
        "{\"ts\":1.0,\"id.orig_h\":\"10.0.0.1\",\"id.orig_p\":1024,\
         \"id.resp_h\":\"10.0.0.2\",\"id.resp_p\":80}\n"
    );
}

crate::row! {
    /// For the tests.
    struct Longer = "longer" {
        n: u64 = "n",
        name: crate::Extra<Option<&'static str>> = "name",
    }
}

#[test]
fn optional_columns_are_written_on_request() {
    for (columns, name, text) in [
        (vec![], crate::Extra(None), "#fields\tn\n#types\tcount\n7\n"),
        (
            vec!["name".to_owned()],
            crate::Extra(Some(None)),
            "#fields\tn\tname\n#types\tcount\tstring\n7\t-\n",
        ),
    ] {
        let mut logs = Logs::new(Options { columns, ..Options::default() });
        logs.write(&Longer { n: 7, name });
        let found_text = String::from_utf8_lossy(logs.pending("longer")).into_owned();
        assert!(found_text.ends_with(text), "{found_text}");
    }
}

#[test]
fn collected_rows_are_added_by_their_keys() {
    let mut shard = Logs::collecting(Options::default());
    shard.set_time(Time::from_secs(86_400));
    for packet in [3, 4] {
        shard.set_key(Key { packet, due: Time::MAX, tie: 0 });
        shard.write(&row());
    }
    assert!(shard.collected_bytes() > 0);
    let rows = shard.take();
    assert_eq!((shard.collected_bytes(), shard.take().len()), (0, 0));
    let packets: Vec<_> = rows[0].marks.iter().map(|m| m.0.packet).collect();
    assert_eq!((rows.len(), rows[0].shape.path, packets), (1, "sample", vec![3, 4]));
    let mut merged = Logs::new(Options::default());
    let mut direct = Logs::new(Options::default());
    direct.set_time(Time::from_secs(86_400));
    direct.write(&row());
    let stream_index = merged.stream_index(&rows[0]);
    merged.add_at(stream_index, &rows[0], 1..2);
    assert_eq!(merged.pending("sample"), direct.pending("sample"), "with the header");
    merged.add_at(stream_index, &rows[0], 0..1);
    direct.write(&row());
    assert_eq!(merged.pending("sample"), direct.pending("sample"));
    assert_eq!(merged.counts(), direct.counts());
}

#[test]
fn pieces_make_the_same_file_as_rows() {
    let dir = std::env::temp_dir().join(format!("gannet-log-{}-pieces", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let mut logs = Logs::new(Options { dir: Some(dir.clone()), ..Options::default() });
    let mut expected = String::new();
    // Among short rows are some longer than a piece.
    for n in (0..9_000).chain([9_000; 3]) {
        let name = if n == 9_000 { "x".repeat(4_000) } else { "y".to_owned() };
        let row = Wide { n, names: crate::Vector(vec![name; if n == 9_000 { 90 } else { 1 }]) };
        expected += &format!("{n}\t{}\n", row.names.0.join(","));
        logs.write(&row);
    }
    logs.close().unwrap();
    let text = std::fs::read_to_string(dir.join("wide.log")).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    let lines: String =
        text.lines().filter(|l| !l.starts_with('#')).fold(String::new(), |all, l| all + l + "\n");
    assert!(lines == expected && text.len() > 5 * PIECE);
}

crate::row! {
    /// For the tests.
    struct Wide = "wide" {
        n: u64 = "n",
        names: crate::Vector<String> = "names",
    }
}

#[test]
fn chunks_of_collected_rows_are_reused() {
    let mut shard = Logs::collecting(Options::default());
    let mut direct = Logs::new(Options::default());
    let mut merged = Logs::new(Options::default());
    let mut addresses: Vec<usize> = Vec::new();
    for n in [1, 5_000, 40, 5_000, 600] {
        for _ in 0..n {
            assert_eq!(shard.write(&row()), Cut::default());
            direct.write(&row());
        }
        let taken = shard.take();
        let rows: usize = taken.iter().map(|r| r.marks.len()).sum();
        assert_eq!((rows, shard.collected_bytes()), (n, 0));
        assert!(taken.iter().all(|r| r.bytes.len() <= CHUNK_BYTES), "chunks do not grow");
        for rows in &taken {
            let stream_index = merged.stream_index(rows);
            let (first_half, second_half) =
                (0..rows.marks.len() / 2, rows.marks.len() / 2..rows.marks.len());
            merged.add_at(stream_index, rows, first_half);
            merged.add_at(stream_index, rows, second_half);
        }
        let chunks: Vec<_> = taken.iter().filter(|r| r.is_chunk()).collect();
        let address = |r: &&Rows| r.bytes.as_ptr().addr();
        let again = chunks.iter().filter(|r| addresses.contains(&address(r))).count();
        assert!(addresses.is_empty() || chunks.is_empty() || again > 0);
        addresses.extend(chunks.iter().map(address));
        shard.reuse(taken);
    }
    assert_eq!(merged.pending("sample"), direct.pending("sample"));
    assert_eq!(merged.counts(), direct.counts());
}

#[test]
fn a_tap_receives_rows_of_all_streams_in_order() {
    let tap = Tap::default();
    let mut logs = Logs::new(Options { tap: Some(tap.clone()), ..Options::default() });
    logs.write(&row());
    logs.write(&Longer { n: 7, name: crate::Extra(None) });
    logs.write(&Sample { n: Some(2), ..row() });
    let mut rows = crate::Tapped::default();
    tap.take(&mut rows);
    let texts = |rows: &crate::Tapped| -> Vec<(&str, String)> {
        let text = |r: &crate::TappedRow| &rows.bytes[r.start as usize..][..r.len as usize];
        let text_of = |r| String::from_utf8_lossy(text(r)).into_owned();
        rows.rows.iter().map(|r| (rows.path(r.stream).unwrap(), text_of(r))).collect()
    };
    assert_eq!(
        texts(&rows),
        [
            ("sample", "1.000000\t10.0.0.1\t1024\t10.0.0.2\t80\t-".to_owned()),
            ("longer", "7".to_owned()),
            ("sample", "1.000000\t10.0.0.1\t1024\t10.0.0.2\t80\t2".to_owned())
        ]
    );
    assert_eq!(rows.fields(0).len(), 6);
    logs.close().unwrap();
    tap.take(&mut rows);
    assert!(rows.rows.is_empty());
}

#[test]
fn streams_that_are_not_selected_have_no_file() {
    let dir = Some("/nonexistent".into());
    let selection = Selection::of(["conn"]);
    let mut logs = Logs::new(Options { dir, selection, ..Options::default() });
    logs.write(&row());
    assert!(logs.counts().is_empty());
    logs.close().unwrap();
}

#[test]
fn the_error_of_a_file_that_cannot_be_created_names_it() {
    let dir = Some("/nonexistent".into());
    let mut logs = Logs::new(Options { dir, ..Options::default() });
    logs.write(&row());
    let error = logs.close().unwrap_err().to_string();
    assert!(error.starts_with("/nonexistent/sample.log: "), "{error}");
}
