//! Execution of scripts: the Lua state, its modules, its errors.
#![allow(unsafe_code)]

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::path::PathBuf;

use gannet_pipeline::worker_pool::Progress;
use mlua::Function;
use mlua::LightUserData;
use mlua::Lua;
use mlua::LuaOptions;
use mlua::StdLib;

use crate::api;
use crate::memory;

/// Options for running a script.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Runs the script without `io`, `os`, `ffi`, `debug`, native modules, and bytecode.
    pub sandbox: bool,
    /// Every pipeline reports its progress, not only those for which the script requests it.
    pub progress: bool,
    /// Shows the progress of a pipeline, unless the script has a function for it.
    pub report: Option<Report>,
}

/// Shows the progress of a pipeline after `seconds`; `done` is set in the last call.
pub type Report = fn(progress: &Progress, seconds: f64, done: bool);

/// The error that ended a script.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// The script.
        path: PathBuf,
        /// The cause.
        error: std::io::Error,
    },
    /// It is not valid Lua; the text has file and line.
    #[error("{0}")]
    Syntax(String),
    /// It raised an error; the text has the trace-back.
    #[error("{0}")]
    Run(String),
    /// Its output could not be written.
    #[error("standard output: {0}")]
    Output(String),
}

/// Module sources with their names for `require`; one source may have several names.
const MODULES: &[(&[&str], &str)] = &[
    (&["gannet"], include_str!("lua/gannet.lua")),
    (&["gannet.events"], include_str!("lua/events.lua")),
    (&["gannet.values"], include_str!("lua/values.lua")),
    (&["gannet.views"], include_str!("lua/views.lua")),
    (&["gannet.client"], include_str!("lua/client.lua")),
    (&["gannet.respdiff"], include_str!("lua/respdiff.lua")),
    (&["dnsjit.core.objects"], include_str!("lua/dnsjit/objects.lua")),
    (
        &[
            "dnsjit.core.object",
            "dnsjit.core.object.pcap",
            "dnsjit.core.object.ether",
            "dnsjit.core.object.null",
            "dnsjit.core.object.loop",
            "dnsjit.core.object.linuxsll",
            "dnsjit.core.object.linuxsll2",
            "dnsjit.core.object.ieee802",
            "dnsjit.core.object.gre",
            "dnsjit.core.object.ip",
            "dnsjit.core.object.ip6",
            "dnsjit.core.object.icmp",
            "dnsjit.core.object.icmp6",
            "dnsjit.core.object.udp",
            "dnsjit.core.object.tcp",
            "dnsjit.core.object.payload",
            "dnsjit.core.timespec",
        ],
        include_str!("lua/dnsjit/object.lua"),
    ),
    (
        &[
            "dnsjit.core.object.dns",
            "dnsjit.core.object.dns.label",
            "dnsjit.core.object.dns.q",
            "dnsjit.core.object.dns.rr",
        ],
        include_str!("lua/dnsjit/dns.lua"),
    ),
    (
        &[
            "dnsjit.input.pcap",
            "dnsjit.input.fpcap",
            "dnsjit.input.mmpcap",
            "dnsjit.input.zpcap",
            "dnsjit.input.zmmpcap",
        ],
        include_str!("lua/dnsjit/input.lua"),
    ),
    (&["dnsjit.filter.layer"], include_str!("lua/dnsjit/layer.lua")),
    (
        &[
            "dnsjit.filter.copy",
            "dnsjit.filter.split",
            "dnsjit.filter.ipsplit",
            "dnsjit.filter.timing",
        ],
        include_str!("lua/dnsjit/filter.lua"),
    ),
    (
        &[
            "dnsjit.core.log",
            "dnsjit.core.channel",
            "dnsjit.core.thread",
            "dnsjit.core.loader",
            "dnsjit.core.file",
            "dnsjit.core.compat",
            "dnsjit.core.receiver",
            "dnsjit.core.producer",
        ],
        include_str!("lua/dnsjit/core.lua"),
    ),
    (
        &[
            "dnsjit.lib.base64url",
            "dnsjit.lib.clock",
            "dnsjit.lib.getopt",
            "dnsjit.lib.ip",
            "dnsjit.lib.parseconf",
            "dnsjit.lib.trie",
        ],
        include_str!("lua/dnsjit/lib.lua"),
    ),
    (
        &[
            "dnsjit.output.pcap",
            "dnsjit.output.null",
            "dnsjit.input.zero",
            "example.input.zero",
            "example.output.null",
        ],
        include_str!("lua/dnsjit/output.lua"),
    ),
    (
        &[
            "dnsjit.output.udpcli",
            "dnsjit.output.tcpcli",
            "dnsjit.output.tlscli",
            "dnsjit.output.dnscli",
        ],
        include_str!("lua/dnsjit/client.lua"),
    ),
    (&["dnsjit.output.respdiff"], include_str!("lua/dnsjit/respdiff.lua")),
];

/// Runs the script at `path` (`-` is standard input) with `arguments` in `arg`.
///
/// # Errors
/// If it cannot be read, is not valid Lua, or raises an error.
pub fn run(path: &Path, arguments: &[OsString], options: Options) -> Result<(), Error> {
    let source = if path.as_os_str() == "-" {
        let mut source = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin(), &mut source).map(|_| source)
    } else {
        std::fs::read(path)
    };
    let mut source = source.map_err(|error| Error::Read { path: path.to_owned(), error })?;
    if source.starts_with(b"#") {
        // The shebang line becomes a comment, so that line numbers do not change.
        source.splice(..1, *b"--");
    }
    if source.starts_with(b"\x1bLJ") {
        let path = path.display();
        return Err(Error::Syntax(format!(
            "{path}: LuaJIT bytecode is not supported; scripts must be text"
        )));
    }
    let (ended, written) = start(path, &source, arguments, options).map_err(explain)?;
    ended.map_err(explain)?;
    written.map_or(Ok(()), |why| Err(Error::Output(why)))
}

/// Whether standard output is a pipe or a socket, which its reader may close early.
fn is_pipe() -> bool {
    let about = std::fs::metadata("/dev/stdout").map(|about| about.file_type());
    about.is_ok_and(|kind| kind.is_fifo() || kind.is_socket())
}

/// Runs a script; returns its result, and the error of writing its output, if any.
fn start(
    path: &Path,
    source: &[u8],
    arguments: &[OsString],
    options: Options,
) -> mlua::Result<(mlua::Result<()>, Option<String>)> {
    let (mut written, mut call) = (None, None);
    let _watch = memory::Watch::new();
    let lua = state(options, |lua| {
        let output = lua.load(include_str!("lua/output.lua")).set_name("=gannet.output");
        written = Some(output.into_function()?.call::<Function>(is_pipe())?);
        let call_script = lua.load(include_str!("lua/call.lua")).set_name("=gannet.call");
        // SAFETY: the function does not raise errors.
        let watch = unsafe { lua.create_c_function(memory::watch)? };
        let place =
            lua.create_function(|_, ()| Ok(memory::failure_position().unwrap_or_default()))?;
        call = Some(call_script.into_function()?.call::<Function>((watch, place))?);
        let arg = lua.create_table()?;
        let own = std::env::args_os().next().unwrap_or_default();
        arg.raw_set(0, lua.create_string(own.as_bytes())?)?;
        arg.raw_set(1, lua.create_string(path.as_os_str().as_bytes())?)?;
        for (index, argument) in arguments.iter().enumerate() {
            arg.raw_set(index + 2, lua.create_string(argument.as_bytes())?)?;
        }
        lua.globals().raw_set("arg", arg)
    })?;
    let name = format!("@{}", path.display());
    let script = lua.load(source).set_name(name).set_mode(mlua::chunk::ChunkMode::Text);
    let ended = script.into_function().and_then(|script| match &call {
        Some(call) => call.call::<Option<mlua::LuaString>>(script),
        None => script.call::<()>(()).map(|()| None),
    });
    let ended = ended.and_then(|problem| match problem {
        None => Ok(()),
        Some(text) => Err(mlua::Error::RuntimeError(text.to_string_lossy())),
    });
    // A script that closed its standard output has written everything before.
    let why = written.and_then(|written| written.call(()).unwrap_or_default());
    Ok((ended, why))
}

/// Runs a dumped function in a separate state in the calling thread; `own` is the thread's handle,
/// which the code receives as an object.
pub(crate) fn thread(own: *const std::ffi::c_void, code: &[u8]) -> Result<(), String> {
    let go = || {
        let lua = state(Options::default(), |_| Ok(()))?;
        let begin: Function = lua
            .load("local own, code = ... require('dnsjit.core.thread')._enter(own, code)")
            .set_name("=thread")
            .into_function()?;
        begin.call::<()>((LightUserData(own.cast_mut()), lua.create_string(code)?))
    };
    go().map_err(|error| explain(error).to_string())
}

/// A state with gannet's modules; `prepare` is called before the sandbox removes functions.
fn state(options: Options, prepare: impl FnOnce(&Lua) -> mlua::Result<()>) -> mlua::Result<Lua> {
    // Wrapping pcall to catch Rust panics would keep the JIT from compiling it; nothing here
    // panics into Lua.
    let settings = LuaOptions::new().catch_rust_panics(false);
    // SAFETY: the FFI and the debug library let a script break memory safety, as in any LuaJIT
    // program; the sandbox removes them before an untrusted script runs.
    let lua = unsafe { Lua::unsafe_new_with(StdLib::ALL, settings) };
    memory::raise_errors(&lua)?;
    prepare(&lua)?;
    let source_of = lua.create_function(|_, wanted: mlua::LuaString| {
        let is_wanted = |name: &&str| *wanted.as_bytes() == *name.as_bytes();
        Ok(MODULES.iter().find(|(names, _)| names.iter().any(is_wanted)).map(|(_, source)| *source))
    })?;
    let boot: Function =
        lua.load(include_str!("lua/boot.lua")).set_name("=gannet").into_function()?;
    let table = LightUserData(api::table().cast_mut().cast());
    api::set_report(options.report);
    let (sandbox, progress) = (options.sandbox, options.progress);
    boot.call::<()>((table, api::declarations(), source_of, sandbox, progress))?;
    Ok(lua)
}

fn explain(error: mlua::Error) -> Error {
    match error {
        mlua::Error::SyntaxError { message, .. } => Error::Syntax(message),
        mlua::Error::RuntimeError(message) => Error::Run(message),
        other => Error::Run(other.to_string()),
    }
}
