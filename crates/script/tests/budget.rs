//! A handler that exceeds its budget ends in an error, and the other handlers run.

mod printed;
mod reported;

use gannet_script::vm::budget::Budget;

/// Runs a script. Returns its output and the reported messages.
fn run(code: &str, budget: &str) -> (String, String) {
    reported::run(code, |machine| machine.set_budget(Budget::parse(budget).ok()))
}

#[test]
fn a_loop_without_end_is_stopped() {
    let code = "event zeek_init() &priority=1\n{\nlocal n = 0;\nwhile ( T )\n++n;\n}\n\
                event zeek_init() { print \"next\"; }";
    let (printed, reported) = run(code, "20ms");
    assert_eq!(printed, "next\n");
    assert!(
        reported.contains("script budget exceeded: it runs for longer than 20ms"),
        "{reported}"
    );
    assert!(reported.contains("test, line"), "{reported}");
}

#[test]
fn a_loop_without_a_body_is_stopped_at_the_first_instruction() {
    let code = "event zeek_init() &priority=1 { while ( T ) { } }\n\
                event zeek_init() { print \"next\"; }";
    let (printed, reported) = run(code, "20ms");
    assert_eq!(printed, "next\n");
    assert!(reported.contains("script budget exceeded"), "{reported}");
}

#[test]
fn functions_count_for_the_handler_that_calls_them() {
    let code = "function turn(n: count): count { return n + 1; }\n\
                event zeek_init() &priority=1 { local n = 0; while ( T ) n = turn(n); }\n\
                event zeek_init() { print \"next\"; }";
    let (printed, reported) = run(code, "20ms");
    assert_eq!(printed, "next\n");
    assert!(reported.contains("script budget exceeded"), "{reported}");
}

#[test]
fn a_string_that_doubles_is_stopped() {
    let code = "event zeek_init() &priority=1\n{\nlocal s = \"0123456789abcdef\";\nwhile ( T )\n\
                s = s + s;\n}\nevent zeek_init() { print \"next\"; }";
    let (printed, reported) = run(code, ",64M");
    assert_eq!(printed, "next\n");
    assert!(reported.contains("memory grew by more than 67108864 bytes"), "{reported}");
}

#[test]
fn handlers_within_their_budget_are_left_alone() {
    let code = "event zeek_init() { local n = 0; while ( n < 1000 ) ++n; print n; }";
    assert_eq!(run(code, "10s,1G"), ("1000\n".to_owned(), String::new()));
}
