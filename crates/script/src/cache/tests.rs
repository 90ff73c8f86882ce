//! Runs with a cache have the same results as runs without.

use std::cell::RefCell;
use std::fs;

use super::*;
use crate::diagnostics::Diagnostics;

/// Replacement of Zeek's own scripts: one construct after another that leaves state.
const BARE: &str = r#"
module GLOBAL;
global cat: function(va_args: any): string;
global fmt: function(va_args: any): string;
global getenv: function(var: string): string;
global current_time: function(): time;
global to_upper: function(str: string): string;
type Color: enum { RED, GREEN, BLUE };
type Inner: record { n: count &default=3; names: set[string] &default=set("a", "b"); };
type Outer: record { id: count; inner: Inner &default=[$n=4]; seen: vector of addr &optional; c: Color &default=GREEN; };
global shared: Outer = [$id=1];
global round_trip: Outer = shared;
global table_of: table[string, count] of Outer &default=function(s: string, n: count): Outer { return [$id=n]; } &redef;
redef table_of += { ["x", 1] = shared };
global nets: set[subnet] = { 10.0.0.0/8, 192.168.0.0/16, [2001:db8::]/32 } &redef;
global words: table[pattern] of count = { [/fo+/] = 1, [/b(a|e)r/i] = 2 } &redef;
global expiring: table[count] of string = { [1] = "one", [2] = "two" } &create_expire=1min;
global ports: vector of port = vector(80/tcp, 53/udp);
global color: set[Color] = { RED, BLUE };
global numbers = vector(1.5, 2.5);
global when_built: interval = 3min;
option tunable: count = 5;
const fixed: string = cat("long enough to need a buffer of its own: ", 12345, " ", 1.25) &redef;
type Plain: record { n: count &default=3; s: string &optional; };
global keyed: set[Plain] = { [$n=9] };
global zeek_init: event();
global started: event(n: count);
global hooked: hook(n: count);
hook hooked(n: count) &priority=5 { print "hook of the base", n; if ( n > 5 ) break; }
function twice(n: count): count { return 2 * n; }
global adder: function(n: count): count;
function maker(by: count): function(n: count): count { return function[by](n: count): count { return n + by; }; }
global made = maker(40);
@ifdef ( twice )
global has_twice = T;
@endif
"#;

const DEFAULT: &str = r#"
module Base;
export { redef enum Color += { Base::VIOLET }; redef record Outer += { extra: string &default="extra"; }; type Late: record { o: Outer; }; global environment = getenv("GANNET_NO_SUCH_VARIABLE"); }
global counter = 0;
event started(n: count) &priority=-3 { counter += n; print "started in the base", n, counter; }
redef nets += { 172.16.0.0/12 };
redef table_of += { ["y", 2] = [$id=2] };
"#;

/// A script of the user, which reads and changes everything.
const USER: &str = r#"
redef record Outer += { mine: count &default=77; };
redef enum Color += { MINE };
redef tunable = 6;
redef words += { [/x[yz]/] = 3 };
hook hooked(n: count) { print "hook of the user", n; }
event started(n: count) { print "started", n; }
event zeek_init()
    {
    print shared, round_trip, table_of["x", 1], table_of["no", 9], table_of;
    round_trip$id = 100;
    print shared$id, table_of["x", 1]$id;
    print 10.1.2.3 in nets, 172.20.0.1 in nets, 11.0.0.1 in nets, words["foo"], words["BER"], words["xy"], |nets|;
    print expiring, ports, color, numbers, when_built, tunable, fixed, has_twice, Base::environment;
    print Plain($n=9) in keyed, Plain($n=8) in keyed, keyed;
    print twice(4), made(2), hook hooked(3), hook hooked(6), RED, Base::VIOLET, MINE, made;
    print Base::Late($o=[$id=5]);
    event started(7);
    }
print "a statement";
"#;

/// A folder of scripts and a cache, removed at the end.
struct ScratchFolder {
    folder: PathBuf,
}

impl ScratchFolder {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("gannet-cache-{name}-{}", std::process::id()));
        let place = Self { folder };
        let _ = fs::remove_dir_all(&place.folder);
        place.write("scripts/base/init-bare.zeek", BARE);
        place.write("scripts/base/init-frameworks-and-bifs.zeek", "# nothing\n");
        place.write("scripts/base/init-default.zeek", "@load base/more\n");
        place.write("scripts/base/more/__load__.zeek", "@load ./main\n");
        place.write("scripts/base/more/main.zeek", DEFAULT);
        place.write("user.zeek", USER);
        place
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.join(name);
        let made = fs::create_dir_all(path.parent().unwrap_or(&self.folder));
        assert!(made.and_then(|()| fs::write(&path, text)).is_ok());
    }

    fn options(&self) -> Options {
        Options {
            files: vec![self.folder.join("user.zeek").display().to_string()],
            ..Options::default()
        }
    }

    fn search_path(&self) -> Vec<String> {
        let inner = |name: &str| self.folder.join(name).display().to_string();
        vec![".".to_owned(), inner("first"), inner("scripts")]
    }

    fn cache(&self) -> Cache {
        Cache::in_subfolder(&self.folder.join("cache"), &self.options(), &self.search_path())
            .unwrap_or_else(|| unreachable!("these options allow a cache"))
    }

    /// Whether the cache has a valid file.
    fn is_cached(&self) -> bool {
        self.cache().load(&mut Program::default(), &mut Machine::new()).is_some()
    }

    /// The output and the diagnostics of a run.
    fn run(&self, cached: bool) -> String {
        let reports = Rc::new(RefCell::new(Vec::new()));
        let sink = reports.clone();
        let diagnostics = Diagnostics::new(Box::new(move |diagnostic, _| {
            sink.borrow_mut().extend(diagnostic.line());
        }));
        let mut program = Program { diagnostics, ..Program::default() };
        let mut machine = Machine::new();
        let printed = Shared::default();
        machine.set_output(Box::new(printed.clone()));
        let options = Options { scripts: None, ..self.options() };
        let cache = cached.then(|| self.cache());
        let parsed = crate::command::parse_in(
            &mut program,
            &mut machine,
            &options,
            self.search_path(),
            cache,
        );
        if parsed.is_ok() {
            machine.with(&mut program).run();
            machine.flush();
        }
        let printed = printed.0.borrow().clone();
        format!(
            "{parsed:?}\n{}\n{}",
            String::from_utf8_lossy(&printed),
            String::from_utf8_lossy(&reports.borrow())
        )
    }

    fn file(&self) -> PathBuf {
        self.cache().file
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_cached_run_prints_what_a_cold_one_prints() {
    let place = ScratchFolder::new("same");
    let without = place.run(false);
    assert!(without.contains("started in the base, 7, 7"), "{without}");
    assert!(!place.is_cached());
    assert_eq!(place.run(true), without, "the run that writes the cache");
    assert!(place.is_cached());
    assert_eq!(place.run(true), without, "the run that reads it");
}

#[test]
fn a_changed_script_or_an_earlier_file_invalidates_the_cache() {
    let place = ScratchFolder::new("changed");
    place.run(true);
    assert!(place.is_cached());
    place.write(
        "scripts/base/more/main.zeek",
        &format!("{DEFAULT}\nevent zeek_init() {{ print \"more\"; }}\n"),
    );
    assert!(!place.is_cached());
    assert!(place.run(true).contains("more"));
    assert!(place.is_cached());
    // The same contents at another time.
    place.write(
        "scripts/base/more/main.zeek",
        &format!("{DEFAULT}\nevent zeek_init() {{ print \"more\"; }}\n"),
    );
    assert!(place.is_cached());
    place.write(
        "first/base/more/__load__.zeek",
        &format!("{DEFAULT}\nevent zeek_init() {{ print \"another\"; }}\n"),
    );
    assert!(!place.is_cached());
    assert!(place.run(true).contains("another"));
}

#[test]
fn results_that_may_change_are_not_stored() {
    for (name, code) in [
        ("time", "global started_at = current_time();"),
        ("print", "function show(): bool { print \"shown\"; return T; } global shown = show();"),
        ("warning", "global unknown: no_such_type;"),
    ] {
        let place = ScratchFolder::new(name);
        place.write("scripts/base/more/main.zeek", &format!("{DEFAULT}\n{code}\n"));
        place.run(true);
        assert!(!place.is_cached(), "{name}");
    }
}

#[test]
fn damaged_files_are_rejected_and_replaced() {
    let place = ScratchFolder::new("damaged");
    let without = place.run(false);
    place.run(true);
    let whole = fs::read(place.file()).unwrap_or_default();
    assert!(whole.len() > 1_000);
    for at in [0, 20, 50, 90, whole.len() / 2, whole.len() - 1] {
        let mut damaged = whole.clone();
        if let Some(byte) = damaged.get_mut(at) {
            *byte ^= 0x10;
        }
        assert!(fs::write(place.file(), &damaged).is_ok());
        assert!(!place.is_cached(), "byte {at}");
        assert_eq!(place.run(true), without);
        assert!(place.is_cached());
    }
    assert!(fs::write(place.file(), &whole[..whole.len() - 7]).is_ok());
    assert!(!place.is_cached());
    // Others could have written the file.
    place.run(true);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    assert!(fs::set_permissions(place.file(), mode).is_ok());
    assert!(!place.is_cached());
}

#[test]
fn arbitrary_bytes_are_decoded_without_panic() {
    let place = ScratchFolder::new("harm");
    place.run(true);
    let whole = fs::read(place.file()).unwrap_or_default();
    let body = whole.get(80..).unwrap_or_default();
    let mut from = Reader::new(body);
    assert_eq!(place.cache().is_valid(&mut from), Ok(true));
    let rest = from.left;
    for at in (0..rest.len()).step_by(7) {
        decode_untrusted(&rest[..at]);
        let mut changed = rest.to_vec();
        if let Some(byte) = changed.get_mut(at) {
            *byte = byte.wrapping_add(0x81);
        }
        decode_untrusted(&changed);
    }
}

#[test]
fn functions_that_may_be_called_are_sorted() {
    assert!(PURE.is_sorted());
}

#[test]
fn impure_functions_prevent_caching() {
    let mut recorder = Recorder::default();
    recorder.call("fmt", b"");
    recorder.call("getenv", b"no such variable");
    assert!(!recorder.uncacheable);
    assert_eq!(recorder.environment.get("no such variable"), Some(&None));
    recorder.call("current_time", b"");
    assert!(recorder.uncacheable);
}
