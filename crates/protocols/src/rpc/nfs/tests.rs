//! Tests of calls and replies of all procedures.

use gannet_base::Dir;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_event::Command;

use super::*;
use crate::Analyze;
use crate::rpc;
use crate::testing::Harness;

/// Encodes 32-bit integers.
fn words<const N: usize>(numbers: [u32; N]) -> Vec<u8> {
    numbers.map(u32::to_be_bytes).concat()
}

/// Encodes a string with its padding.
fn text(text: &str) -> Vec<u8> {
    let mut out = (text.len() as u32).to_be_bytes().to_vec();
    out.extend_from_slice(text.as_bytes());
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// Encodes the attributes of a directory of two bytes.
fn fattr() -> Vec<u8> {
    words([2, 0o755, 1, 500, 501, 0, 2, 0, 512, 8, 1, 0, 9, 0, 7, 10, 0, 11, 0, 12, 500_000_000])
}

const FATTR: &str = r#"{"ftype":"NFS3::FTYPE_DIR","mode":493,"nlink":1,"uid":500,"gid":501,"size":2,"used":512,"rdev1":8,"rdev2":1,"fsid":9,"fileid":7,"atime":10.000000,"mtime":11.000000,"ctime":12.500000}"#;

/// Encodes weak cache consistency attributes.
fn wcc() -> Vec<u8> {
    words([0, 3, 13, 0, 14, 0])
}

const WCC: &str = r#"{"size":3,"atime":13.000000,"mtime":14.000000}"#;

/// One call and its reply.
struct Exchange {
    h: Harness,
    a: rpc::Nfs,
}

impl Exchange {
    fn new() -> Self {
        let mut h = Harness::new(Proto::Udp, 2049);
        h.listen("nfs_proc");
        let a = rpc::Nfs::new(&mut h.cx());
        Self { h, a }
    }

    fn call(&mut self, prog: u32, proc: u32, args: &[&[u8]]) {
        let head = words([1, 0, 2, prog, 3, proc, 0, 0, 0, 0]);
        let call = [&head[..], &args.concat()].concat();
        self.a.datagram(&mut self.h.cx(), Dir::Orig, &call, call.len() as u32);
    }

    fn reply(&mut self, status: u32, results: &[&[u8]]) -> Vec<String> {
        let head = words([1, 1, 0, 0, 0, 0, status]);
        let reply = [&head[..], &results.concat()].concat();
        self.a.datagram(&mut self.h.cx(), Dir::Resp, &reply, reply.len() as u32);
        self.h.events()
    }

    fn weirds(&self) -> Vec<(String, String)> {
        let rows = self.h.rows("weird");
        rows.iter().map(|row| (row["name"].clone(), row["addl"].clone())).collect()
    }
}

/// The event of an exchange without weirds: its name, and its arguments after `info`.
fn event(proc: u32, args: &[&[u8]], status: u32, results: &[&[u8]]) -> String {
    let mut exchange = Exchange::new();
    exchange.call(PROGRAM, proc, args);
    let events = exchange.reply(status, results);
    assert!(exchange.weirds().is_empty(), "{:?}", exchange.weirds());
    let [event] = &events[..] else { panic!("{events:?}") };
    let (name, rest) = event.split_once(' ').unwrap();
    let (_, args) = rest.split_once("\"rpc_auxgids\":[]}").unwrap();
    format!("{name} {}", args.trim_start_matches(','))
}

#[test]
fn attributes_are_read_and_set() {
    let file = text("file");
    let fh = r#""fh":"file""#;
    assert_eq!(event(proc::NULL, &[], 0, &[]), "nfs_proc_null ");
    assert_eq!(
        event(proc::GETATTR, &[&file], 0, &[&fattr()]),
        format!(r#"nfs_proc_getattr {fh},"attrs":{FATTR}"#)
    );
    let all = words([1, 0o644, 1, 5, 1, 6, 1, 0, 7, 0, 1, 0]);
    let new = r#""new_attributes":{"mode":420,"uid":5,"gid":6,"size":4485040510343575428,"atime":"NFS3::DONT_CHANGE","mtime":"NFS3::SET_TO_SERVER_TIME"}"#;
    let changed = [&words([1])[..], &wcc(), &words([1]), &fattr()].concat();
    let (pre, post) = (format!(r#""dir_pre_attr":{WCC}"#), format!(r#""dir_post_attr":{FATTR}"#));
    assert_eq!(
        event(proc::SETATTR, &[&file, &all], 0, &[&changed]),
        format!(r#"nfs_proc_sattr "req":{{{fh},{new}}},"rep":{{{pre},{post}}}"#)
    );
    let none = r#""new_attributes":{"atime":"NFS3::DONT_CHANGE","mtime":"NFS3::DONT_CHANGE"}"#;
    assert_eq!(
        event(proc::SETATTR, &[&file, &words([0; 7])], 1, &[&words([0, 0])]),
        format!(r#"nfs_proc_sattr "req":{{{fh},{none}}},"rep":{{}}"#)
    );
}

#[test]
fn names_are_looked_up_made_and_removed() {
    let (dir, name, attr) = (text("dir"), text("a"), [&words([1])[..], &fattr()].concat());
    let req = r#""req":{"dirfh":"dir","fname":"a"}"#;
    assert_eq!(
        event(proc::LOOKUP, &[&dir, &name], 0, &[&text("fh"), &attr, &words([0])]),
        format!(r#"nfs_proc_lookup {req},"rep":{{"fh":"fh","obj_attr":{FATTR}}}"#)
    );
    assert_eq!(
        event(proc::LOOKUP, &[&dir, &name], 2, &[&attr]),
        format!(r#"nfs_proc_lookup {req},"rep":{{"dir_attr":{FATTR}}}"#)
    );
    let made: &[&[u8]] = &[&words([1]), &text("fh"), &words([0, 0, 0])];
    // The attributes in these calls are not parsed.
    for (proc, kind) in [(proc::CREATE, "create"), (proc::MKDIR, "mkdir")] {
        assert_eq!(
            event(proc, &[&dir, &name, b"attributes"], 0, made),
            format!(r#"nfs_proc_{kind} {req},"rep":{{"fh":"fh"}}"#)
        );
    }
    assert_eq!(
        event(proc::MKDIR, &[&dir, &name], 17, &[&words([0]), &attr]),
        format!(r#"nfs_proc_mkdir {req},"rep":{{"dir_post_attr":{FATTR}}}"#)
    );
    for (proc, kind) in [(proc::REMOVE, "remove"), (proc::RMDIR, "rmdir")] {
        assert_eq!(
            event(proc, &[&dir, &name], 0, &[&words([0]), &attr]),
            format!(r#"nfs_proc_{kind} {req},"rep":{{"dir_post_attr":{FATTR}}}"#)
        );
    }
    let to: &[&[u8]] = &[&dir, &name, &text("dir2"), &text("b")];
    assert_eq!(
        event(proc::RENAME, to, 0, &[&words([1]), &wcc(), &words([0, 0, 0])]),
        format!(
            r#"nfs_proc_rename "req":{{"src_dirfh":"dir","src_fname":"a","dst_dirfh":"dir2","dst_fname":"b"}},"rep":{{"src_dir_pre_attr":{WCC}}}"#
        )
    );
}

#[test]
fn links_are_made_and_read() {
    let (dir, name) = (text("dir"), text("a"));
    let link = r#""link":{"dirfh":"dir","fname":"a"}"#;
    assert_eq!(
        event(proc::LINK, &[&text("fh"), &dir, &name], 0, &[&words([0, 1]), &wcc(), &words([0])]),
        format!(r#"nfs_proc_link "req":{{"fh":"fh",{link}}},"rep":{{"preattr":{WCC}}}"#)
    );
    assert_eq!(
        event(proc::SYMLINK, &[&dir, &name, &words([0; 6]), &text("/b")], 0, &[&words([0; 4])]),
        format!(
            r#"nfs_proc_symlink "req":{{{link},"symlinkdata":{{"symlink_attributes":{{"atime":"NFS3::DONT_CHANGE","mtime":"NFS3::DONT_CHANGE"}},"nfspath":"/b"}}}},"rep":{{}}"#
        )
    );
    assert_eq!(
        event(proc::READLINK, &[&text("fh")], 0, &[&words([0]), &text("/b")]),
        r#"nfs_proc_readlink "fh":"fh","rep":{"nfspath":"/b"}"#
    );
    assert_eq!(
        event(proc::READLINK, &[&text("fh")], 22, &[&words([0])]),
        r#"nfs_proc_readlink "fh":"fh","rep":{}"#
    );
}

#[test]
fn files_are_read_and_written() {
    let read: &[&[u8]] = &[&text("fh"), &words([0, 512, 100])];
    let req = r#""req":{"fh":"fh","offset":512,"size":100}"#;
    assert_eq!(
        event(proc::READ, read, 0, &[&words([0, 4, 1]), &text("data")]),
        format!(r#"nfs_proc_read {req},"rep":{{"size":4,"eof":true}}"#)
    );
    assert_eq!(
        event(proc::READ, read, 5, &[&words([1]), &fattr()]),
        format!(r#"nfs_proc_read {req},"rep":{{"attr":{FATTR}}}"#)
    );
    let write: &[&[u8]] = &[&text("fh"), &words([0, 0, 4, 2]), &text("data")];
    let req = r#""req":{"fh":"fh","offset":0,"size":4,"stable":"NFS3::FILE_SYNC"}"#;
    assert_eq!(
        event(proc::WRITE, write, 0, &[&words([0, 0, 4, 1, 0, 77])]),
        format!(
            r#"nfs_proc_write {req},"rep":{{"size":4,"commited":"NFS3::DATA_SYNC","verf":77}}"#
        )
    );
    assert_eq!(
        event(proc::WRITE, write, 28, &[&words([0, 1]), &wcc()]),
        format!(r#"nfs_proc_write {req},"rep":{{"preattr":{WCC}}}"#)
    );
}

#[test]
fn data_are_arguments_where_scripts_ask_for_them() {
    let data = |settings: &[(&'static str, u64)], offset: u32| {
        let mut exchange = Exchange::new();
        for (name, value) in settings {
            let now = exchange.h.now;
            exchange.h.env.apply_command(now, Command::Setting { name, value: *value });
        }
        exchange.call(PROGRAM, proc::READ, &[&text("fh"), &words([0, offset, 100])]);
        let event = exchange.reply(0, &[&words([0, 4, 1]), &text("data")]).concat();
        let (_, rep) = event.split_once("\"eof\":true").unwrap();
        rep.to_owned()
    };
    let on = ("NFS3::return_data", 1);
    assert_eq!(data(&[], 0), "}");
    assert_eq!(data(&[on], 0), r#","data":"data"}"#);
    assert_eq!(data(&[on], 4), "}");
    assert_eq!(data(&[on, ("NFS3::return_data_first_only", 0)], 4), r#","data":"data"}"#);
    assert_eq!(data(&[on, ("NFS3::return_data_max", 2)], 0), r#","data":"da"}"#);
}

#[test]
fn directories_have_entries() {
    let dir = text("dir");
    let entry = |name: &str| [&words([1, 0, 7])[..], &text(name), &words([0, 1])].concat();
    let req = r#"{"isplus":false,"dirfh":"dir","cookie":1,"cookieverf":2,"dircount":512}"#;
    let [a, b] = [r#"{"fileid":7,"fname":".","cookie":1"#, r#"{"fileid":7,"fname":"b","cookie":1"#];
    assert_eq!(
        event(
            proc::READDIR,
            &[&dir, &words([0, 1, 0, 2, 512])],
            0,
            &[&words([0, 0, 2]), &entry("."), &entry("b"), &words([0, 1])]
        ),
        format!(
            r#"nfs_proc_readdir "req":{req},"rep":{{"isplus":false,"cookieverf":2,"entries":[null,{a}}},{b}}}],"eof":true}}"#
        )
    );
    let plus = [&words([1])[..], &fattr(), &words([1]), &text("fh")].concat();
    assert_eq!(
        event(
            proc::READDIRPLUS,
            &[&dir, &words([0, 1, 0, 2, 512, 600])],
            0,
            &[&words([0, 0, 2]), &entry("."), &plus, &words([0, 0])]
        ),
        format!(
            r#"nfs_proc_readdir "req":{},"rep":{{"isplus":true,"cookieverf":2,"entries":[null,{a},"attr":{FATTR},"fh":"fh"}}],"eof":false}}"#,
            req.replace("false", "true").replace("512", r#"512,"maxcount":600"#)
        )
    );
    assert_eq!(
        event(proc::READDIR, &[&dir, &words([0, 1, 0, 2, 512])], 20, &[&words([0])]),
        format!(r#"nfs_proc_readdir "req":{req},"rep":{{"isplus":false}}"#)
    );
}

#[test]
fn other_calls_are_named() {
    assert_eq!(
        event(18, &[b"args"], 0, &[b"results"]),
        r#"nfs_proc_not_implemented "proc":"NFS3::PROC_FSSTAT""#
    );
    let mut exchange = Exchange::new();
    exchange.call(PROGRAM, 22, &[]);
    assert!(exchange.reply(0, &[]).is_empty());
    exchange.call(ACL, 1, &[b"args"]);
    assert!(exchange.reply(0, &[b"results"]).is_empty());
    exchange.call(100_021, 0, &[]);
    assert_eq!(exchange.reply(0, &[]).len(), 1);
    let names = [("unknown_NFS_request", "22"), ("bad_RPC", "-"), ("bad_RPC_program", "100021")];
    assert_eq!(exchange.weirds(), names.map(|(name, addl)| (name.to_owned(), addl.to_owned())));
}

#[test]
fn numbers_without_a_name_are_weirds() {
    let mut exchange = Exchange::new();
    let sattr = words([0, 0, 0, 0, 3, 4]);
    exchange.call(PROGRAM, proc::SETATTR, &[&text("fh"), &sattr]);
    let event = exchange.reply(3, &[]).concat();
    assert!(event.contains(r#""nfs_stat":"NFS3::NFS3ERR_UNKNOWN""#), "{event}");
    exchange.call(PROGRAM, proc::GETATTR, &[&text("fh")]);
    let mut attr = fattr();
    attr[3] = 9;
    assert!(exchange.reply(0, &[&attr]).concat().contains(r#""attrs":{"mode":493"#));
    exchange.call(PROGRAM, proc::WRITE, &[&text("fh"), &words([0, 0, 4, 3]), &text("data")]);
    let names = [
        ("unhandled_nfs3_time_how", "3"),
        ("invalid_nfs_status", "3"),
        ("unhandled_nfs3_file_type", "9"),
        ("unhandled_nfs3_stable_how", "3"),
    ];
    let mut weirds = exchange.weirds();
    weirds.dedup_by(|a, b| a.0 == b.0);
    assert_eq!(weirds, names.map(|(name, addl)| (name.to_owned(), addl.to_owned())));
}

#[test]
fn results_that_are_cut_have_no_event() {
    for n in 0..21 {
        let mut exchange = Exchange::new();
        exchange.call(PROGRAM, proc::GETATTR, &[&text("fh")]);
        assert!(exchange.reply(0, &[&fattr()[..4 * n]]).is_empty(), "{n}");
    }
}

#[test]
fn a_call_without_a_reply_has_no_results() {
    let mut exchange = Exchange::new();
    exchange.call(PROGRAM, proc::READ, &[&text("fh"), &words([0, 0, 4])]);
    // The time is that of the packet, however late its timers run.
    exchange.h.cx().env.logs.set_time(Time::from_secs(9));
    exchange.a.finish(&mut exchange.h.cx());
    let event = exchange.h.events().concat();
    assert!(event.contains(r#""rep_start":9.000000"#), "{event}");
    assert!(event.contains(r#""rpc_stat":"RPC_TIMEOUT","nfs_stat":"NFS3::NFS3ERR_OK""#), "{event}");
    assert!(event.ends_with(r#""rep":{"size":0,"eof":false}"#), "{event}");
}
