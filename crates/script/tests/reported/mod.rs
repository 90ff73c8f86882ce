//! Runs a script, and returns its output and the reported messages.

use std::cell::RefCell;
use std::rc::Rc;

use gannet_script::diagnostics::Diagnostics;
use gannet_script::parse::Input;
use gannet_script::parse::Parser;
use gannet_script::program::Program;
use gannet_script::vm::Machine;

use crate::printed::Printed;

/// Runs a script with these settings. Returns its output, and the reported messages, a line each.
pub(crate) fn run(code: &str, set: impl FnOnce(&mut Machine)) -> (String, String) {
    let reports = Rc::new(RefCell::new(Vec::new()));
    let sink = reports.clone();
    let diagnostics = Diagnostics::new(Box::new(move |diagnostic, _| {
        sink.borrow_mut().extend(diagnostic.line());
        sink.borrow_mut().push(b'\n');
    }));
    let mut program = Program { diagnostics, ..Program::default() };
    let mut machine = Machine::new();
    set(&mut machine);
    let printed = Printed::default();
    machine.set_output(Box::new(printed.clone()));
    let input = Input::Text { name: "test".to_owned(), code: code.as_bytes().to_vec() };
    let parsed = Parser::new(&mut program, &mut machine, Vec::new()).run([input]);
    assert!(parsed.is_ok(), "{}", String::from_utf8_lossy(&reports.borrow()));
    machine.with(&mut program).run();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&printed.0.borrow()), text(&reports.borrow()))
}
