//! Runs a script: `cargo run -p gannet-lua --example run SCRIPT [ARG]...`

use std::ffi::OsString;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments.is_empty() {
        return Err("which script?".into());
    }
    let script = arguments.remove(0);
    Ok(gannet_lua::run(Path::new(&script), &arguments, gannet_lua::Options::default())?)
}
