//! Compares logs with the output of tshark for captures of LDAP, QUIC, PostgreSQL and Redis.
//!
//! The captures are in `conformance/captures` below `GANNET_SHARED` or `../shared`. Where they are missing
//! or tshark is not installed, the tests report that they are skipped.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::support::Run;
use crate::support::Scratch;

/// The captures whose names begin with `prefix`. `None`, which is reported, if they or tshark are missing.
fn captures(prefix: &str) -> Option<Vec<PathBuf>> {
    let beside =
        || Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).unwrap().join("shared");
    let shared = std::env::var_os("GANNET_SHARED").map_or_else(beside, PathBuf::from);
    let folder = shared.join("conformance/captures");
    let Ok(suites) = folder.read_dir() else {
        eprintln!("skipped: no captures: set GANNET_SHARED to the folder of conformance/captures");
        return None;
    };
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("skipped: tshark is not installed");
        return None;
    }
    let files =
        suites.flatten().filter_map(|suite| suite.path().read_dir().ok()).flatten().flatten();
    let mut out: Vec<PathBuf> = files.map(|f| f.path()).collect();
    out.retain(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(prefix)));
    out.sort();
    assert!(!out.is_empty(), "no captures {prefix}* in {}", folder.display());
    Some(out)
}

/// Fields of the packets that match a display filter of tshark; several values of one field are separated
/// by a bar.
fn tshark(capture: &Path, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-r").arg(capture).args(["-Y", filter, "-T", "fields"]);
    // tshark recognizes PostgreSQL by its port.
    command.args(["-d", "tcp.port==15432,pgsql"]);
    command.args(["-E", "aggregator=|", "-E", "separator=/t"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let run = Run::of(&mut command);
    let row = |line: &str| line.split('\t').map(str::to_owned).collect();
    run.stdout.lines().map(row).collect()
}

/// Columns of a log of a capture.
fn log(test: &str, capture: &Path, name: &str, columns: &[&str]) -> Vec<Vec<String>> {
    let scratch = Scratch::new(&format!("tshark-{test}"));
    scratch.analyze("logs", &["-C"], capture);
    let file = format!("{name}.log");
    if !scratch.list("logs").contains(&file) {
        return Vec::new();
    }
    let text = scratch.read(&format!("logs/{file}"));
    let fields = text.lines().find_map(|l| l.strip_prefix("#fields\t")).unwrap();
    let at = |column: &&str| fields.split('\t').position(|f| f == *column).unwrap();
    let at: Vec<_> = columns.iter().map(at).collect();
    let row = |line: &str| {
        let cells: Vec<_> = line.split('\t').collect();
        at.iter().map(|i| cells[*i].to_owned()).collect()
    };
    text.lines().filter(|l| !l.starts_with('#')).map(row).collect()
}

/// Asserts that `ours` contains all elements of `theirs`, each as often.
fn assert_contains(capture: &Path, theirs: &[String], ours: &[String]) {
    let mut ours = ours.to_vec();
    for one in theirs {
        let at = ours.iter().position(|o| o == one);
        let at =
            at.unwrap_or_else(|| panic!("{}: {one:?} is missing: {ours:?}", capture.display()));
        ours.swap_remove(at);
    }
}

#[test]
fn ldap_searches_agree_with_tshark() {
    let Some(captures) = captures("ldap__") else { return };
    let mut count = 0;
    for capture in captures {
        // Requests nested beyond Zeek's limit have no rows.
        if capture.to_string_lossy().ends_with("-max-recursion.pcap") {
            assert!(log("ldap", &capture, "ldap_search", &["base_object"]).is_empty());
            continue;
        }
        let rows = tshark(&capture, "ldap.searchRequest_element", &["ldap.baseObject"]);
        let bases = rows.iter().flat_map(|r| r[0].split('|'));
        // An empty base is the root, and is logged as unset.
        let theirs: Vec<_> = bases.map(|b| if b.is_empty() { "-" } else { b }.to_owned()).collect();
        let ours = log("ldap", &capture, "ldap_search", &["base_object"]).concat();
        assert_contains(&capture, &theirs, &ours);
        count += theirs.len();
    }
    assert!(count >= 20, "only {count} searches");
}

#[test]
fn quic_server_names_agree_with_tshark() {
    const FIELDS: &[&str] =
        &["udp.srcport", "tls.handshake.extensions_server_name", "quic.version"];
    // Google's versions of QUIC carry TLS, too, but have another packet format.
    const GOOGLES: &str = "0x5430";
    let mut count = 0;
    for prefix in ["quic__", "cfgs__default__pcap__quic", "quic_"] {
        let Some(captures) = captures(prefix) else { return };
        for capture in captures {
            let rows = tshark(&capture, "quic && tls.handshake.type == 1", FIELDS);
            let hellos = rows.iter().filter(|r| !r[1].is_empty() && !r[2].starts_with(GOOGLES));
            // Retransmitted hellos count once.
            let first = |list: &str| list.split('|').next().unwrap_or_default().to_owned();
            let mut theirs: Vec<_> =
                hellos.map(|r| format!("{} {}", first(&r[0]), first(&r[1]))).collect();
            theirs.sort();
            theirs.dedup();
            let ours = log("quic", &capture, "quic", &["id.orig_p", "server_name"]);
            let ours: Vec<_> = ours.iter().map(|r| r.join(" ")).collect();
            assert_contains(&capture, &theirs, &ours);
            count += theirs.len();
        }
    }
    assert!(count >= 20, "only {count} hellos");
}

#[test]
fn postgresql_queries_and_users_agree_with_tshark() {
    const COLUMNS: &[&str] = &["frontend", "frontend_arg", "user"];
    let Some(captures) = captures("postgresql__psql") else { return };
    let mut count = 0;
    for capture in captures {
        let queries = tshark(&capture, "pgsql.query", &["pgsql.query"]).concat();
        let startups = tshark(
            &capture,
            "pgsql.type == \"Startup message\"",
            &["pgsql.parameter_name", "pgsql.parameter_value"],
        );
        let mut theirs: Vec<_> = queries.iter().map(|q| format!("simple_query {q}")).collect();
        for startup in startups {
            let mut parameters = startup[0].split('|').zip(startup[1].split('|'));
            let user = parameters.find(|(name, _)| *name == "user").unwrap().1;
            theirs.push(format!("startup {user}"));
        }
        let rows = log("postgresql", &capture, "postgresql", COLUMNS);
        let ours: Vec<_> = rows
            .iter()
            .filter_map(|r| match &*r[0] {
                "startup" => Some(format!("startup {}", r[2])),
                "simple_query" => Some(format!("simple_query {}", r[1])),
                _ => None,
            })
            .collect();
        assert_contains(&capture, &theirs, &ours);
        assert_eq!(theirs.len(), ours.len(), "{}: {theirs:?} {ours:?}", capture.display());
        count += theirs.len();
    }
    assert!(count >= 10, "only {count} messages");
}

#[test]
fn redis_commands_agree_with_tshark() {
    const FIELDS: &[&str] = &["resp.array.length", "resp.bulk_string.value"];
    let Some(captures) = captures("redis__") else { return };
    let mut count = 0;
    for capture in captures {
        // Zeek does not detect Redis in a connection that begins with a reply.
        if capture.ends_with("redis__start-with-server.pcapng") {
            continue;
        }
        let mut theirs = Vec::new();
        for row in tshark(&capture, "resp.array && tcp.dstport == 6379", FIELDS) {
            let mut words = row[1].split('|').map(text);
            for length in row[0].split('|') {
                let length = length.parse().unwrap();
                let command: Vec<_> = words.by_ref().take(length).collect();
                // tshark shows only the part of a command that is in this packet.
                if command.len() < length {
                    break;
                }
                theirs.push(match &*command[0].to_ascii_lowercase() {
                    "set" => command[..3].join(" "),
                    _ => command[0].clone(),
                });
            }
        }
        // Zeek does not detect Redis where the client sends an empty line.
        if capture.ends_with("redis__bulk-loading.pcap") {
            assert_eq!(theirs.pop().as_deref(), Some("ECHO"));
        }
        let ours: Vec<_> = log("redis", &capture, "redis", &["cmd.name", "cmd.key", "cmd.value"])
            .iter()
            .map(|r| if r[0].eq_ignore_ascii_case("set") { r.join(" ") } else { r[0].clone() })
            .collect();
        assert_contains(&capture, &theirs, &ours);
        count += theirs.len();
    }
    assert!(count >= 20, "only {count} commands");
}

/// Decodes hexadecimal digits to text.
fn text(hex: &str) -> String {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let bytes: Vec<_> = hex.as_bytes().chunks(2).map(byte).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
