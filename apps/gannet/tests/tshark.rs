//! What tshark reads in the captures of LDAP, QUIC, PostgreSQL and Redis, against the logs.
//!
//! The captures lie in `conformance/captures` below `GANNET_SHARED` or `../shared`. Where they are not
//! there, or tshark is not installed, the tests say that they were skipped.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::support::Run;
use crate::support::Scratch;

/// The captures of a protocol whose names begin so; `None`, and words, where they cannot be compared.
fn captures(prefix: &str) -> Option<Vec<PathBuf>> {
    let beside =
        || Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).unwrap().join("shared");
    let shared = std::env::var_os("GANNET_SHARED").map_or_else(beside, PathBuf::from);
    let folder = shared.join("conformance/captures");
    let Ok(suites) = folder.read_dir() else {
        eprintln!("skipped: no captures: set GANNET_SHARED to where conformance/captures lies");
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

/// Fields of the packets that a display filter of tshark lets through; several values of one field are
/// separated by a bar.
fn tshark(capture: &Path, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-r").arg(capture).args(["-Y", filter, "-T", "fields"]);
    // tshark goes by ports here.
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

/// Asserts that each of tshark's findings is one of ours.
fn assert_within(capture: &Path, theirs: &[String], ours: &[String]) {
    let mut ours = ours.to_vec();
    for one in theirs {
        let at = ours.iter().position(|o| o == one);
        let at =
            at.unwrap_or_else(|| panic!("{}: {one:?} is missing: {ours:?}", capture.display()));
        ours.swap_remove(at);
    }
}

#[test]
fn searches_of_ldap() {
    let Some(captures) = captures("ldap__") else { return };
    let mut count = 0;
    for capture in captures {
        // Nested deeper than Zeek goes: no row is made of those.
        if capture.to_string_lossy().ends_with("-max-recursion.pcap") {
            assert!(log("ldap", &capture, "ldap_search", &["base_object"]).is_empty());
            continue;
        }
        let rows = tshark(&capture, "ldap.searchRequest_element", &["ldap.baseObject"]);
        let bases = rows.iter().flat_map(|r| r[0].split('|'));
        // A base that is empty is the root, and not logged.
        let theirs: Vec<_> = bases.map(|b| if b.is_empty() { "-" } else { b }.to_owned()).collect();
        let ours = log("ldap", &capture, "ldap_search", &["base_object"]).concat();
        assert_within(&capture, &theirs, &ours);
        count += theirs.len();
    }
    assert!(count >= 20, "only {count} searches");
}

#[test]
fn names_in_hellos_of_quic() {
    const FIELDS: &[&str] =
        &["udp.srcport", "tls.handshake.extensions_server_name", "quic.version"];
    // Google's own versions carry TLS, too, but are another protocol.
    const GOOGLES: &str = "0x5430";
    let mut count = 0;
    for prefix in ["quic__", "cfgs__default__pcap__quic", "quic_"] {
        let Some(captures) = captures(prefix) else { return };
        for capture in captures {
            let rows = tshark(&capture, "quic && tls.handshake.type == 1", FIELDS);
            let hellos = rows.iter().filter(|r| !r[1].is_empty() && !r[2].starts_with(GOOGLES));
            // Those that are sent again count once.
            let first = |list: &str| list.split('|').next().unwrap_or_default().to_owned();
            let mut theirs: Vec<_> =
                hellos.map(|r| format!("{} {}", first(&r[0]), first(&r[1]))).collect();
            theirs.sort();
            theirs.dedup();
            let ours = log("quic", &capture, "quic", &["id.orig_p", "server_name"]);
            let ours: Vec<_> = ours.iter().map(|r| r.join(" ")).collect();
            assert_within(&capture, &theirs, &ours);
            count += theirs.len();
        }
    }
    assert!(count >= 20, "only {count} hellos");
}

#[test]
fn queries_and_users_of_postgresql() {
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
        assert_within(&capture, &theirs, &ours);
        assert_eq!(theirs.len(), ours.len(), "{}: {theirs:?} {ours:?}", capture.display());
        count += theirs.len();
    }
    assert!(count >= 10, "only {count} messages");
}

#[test]
fn commands_of_redis() {
    const FIELDS: &[&str] = &["resp.array.length", "resp.bulk_string.value"];
    let Some(captures) = captures("redis__") else { return };
    let mut count = 0;
    for capture in captures {
        // For Zeek, traffic that starts after a reply is not Redis.
        if capture.ends_with("redis__start-with-server.pcapng") {
            continue;
        }
        let mut theirs = Vec::new();
        for row in tshark(&capture, "resp.array && tcp.dstport == 6379", FIELDS) {
            let mut words = row[1].split('|').map(text);
            for length in row[0].split('|') {
                let length = length.parse().unwrap();
                let command: Vec<_> = words.by_ref().take(length).collect();
                // Of a command that goes on in another packet, tshark shows what is in this one.
                if command.len() < length {
                    break;
                }
                theirs.push(match &*command[0].to_ascii_lowercase() {
                    "set" => command[..3].join(" "),
                    _ => command[0].clone(),
                });
            }
        }
        // For Zeek, a client that sends an empty line is not a Redis client.
        if capture.ends_with("redis__bulk-loading.pcap") {
            assert_eq!(theirs.pop().as_deref(), Some("ECHO"));
        }
        let ours: Vec<_> = log("redis", &capture, "redis", &["cmd.name", "cmd.key", "cmd.value"])
            .iter()
            .map(|r| if r[0].eq_ignore_ascii_case("set") { r.join(" ") } else { r[0].clone() })
            .collect();
        assert_within(&capture, &theirs, &ours);
        count += theirs.len();
    }
    assert!(count >= 20, "only {count} commands");
}

/// Text of hexadecimal digits.
fn text(hex: &str) -> String {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let bytes: Vec<_> = hex.as_bytes().chunks(2).map(byte).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
