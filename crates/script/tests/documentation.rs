//! Built-in functions that read the documentation of loaded packages.

mod printed;

use std::fs;
use std::path::Path;

use gannet_script::parse::Input;
use gannet_script::parse::Parser;
use gannet_script::program::Program;
use gannet_script::vm::Machine;

use printed::Printed;

#[test]
fn only_loaded_packages_have_a_readme() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("documentation");
    for package in ["loaded", "silent", "other"] {
        fs::create_dir_all(folder.join(package)).unwrap();
        fs::write(folder.join(package).join("__load__.zeek"), "").unwrap();
    }
    fs::write(folder.join("loaded/README"), "Detects it.\n\nAt once.\n").unwrap();
    fs::write(folder.join("other/README"), "Not loaded.\n").unwrap();
    let at = |package: &str| folder.join(package).display().to_string();
    let [loaded, silent, other] = ["loaded", "silent", "other"].map(at);
    let code = format!(
        "@load {loaded}\n@load {silent}\nglobal get_package_readme: function(name: string): string;\n\
         print get_package_readme(\"{loaded}\"), |get_package_readme(\"{silent}\")|,\n\
         |get_package_readme(\"{other}\")|;\n"
    );
    let mut program = Program::default();
    let mut machine = Machine::new();
    let printed = Printed::default();
    machine.set_output(Box::new(printed.clone()));
    let input = Input::Text { name: "test".to_owned(), code: code.into_bytes() };
    Parser::new(&mut program, &mut machine, Vec::new()).run([input]).unwrap();
    machine.with(&mut program).run();
    assert_eq!(
        String::from_utf8_lossy(&printed.0.borrow()),
        "Detects it.\\x0a\\x0aAt once., 0, 0\n"
    );
}
