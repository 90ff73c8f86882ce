//! Runs Zeek scripts: `zeek [options] files`, without the rest of gannet.

fn main() -> std::process::ExitCode {
    gannet_script::command::main(std::env::args_os().skip(1).collect())
}
