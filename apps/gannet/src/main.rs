//! The command: arguments, terminal, exit codes.

use std::path::PathBuf;
use std::process::ExitCode;

use gannet_capture::Stream;
use gannet_engine::Engine;
use gannet_engine::Options;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let mut out = PathBuf::from(".");
    let mut files = Vec::new();
    let mut options = Options::default();
    while let Some(a) = args.next() {
        match a.as_str() {
            "analyze" => {}
            "-C" => options.ignore_checksums = true,
            "-o" | "--out" => out = args.next().unwrap_or_default().into(),
            _ => files.push(PathBuf::from(a)),
        }
    }
    options.logs.dir = Some(out);
    let mut engine = Engine::new(options);
    let mut code = 0;
    match Stream::open(&files, gannet_capture::Options::default()) {
        Ok(mut stream) => loop {
            match stream.next_batch() {
                Ok(Some(batch)) => {
                    if engine.batch(&batch).is_err() {
                        code = 1;
                        break;
                    }
                }
                Ok(None) => break,
                Err(e) => {
                    use std::io::Write as _;
                    let _ = writeln!(std::io::stderr(), "{e}");
                    code = 3;
                }
            }
        },
        Err(e) => {
            use std::io::Write as _;
            let _ = writeln!(std::io::stderr(), "{e}");
            code = 2;
        }
    }
    if engine.finish().is_err() {
        code = 1;
    }
    ExitCode::from(code)
}
