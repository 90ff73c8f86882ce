//! A pager for answers that are longer than the terminal.

use std::ffi::OsString;
use std::io;
use std::io::IsTerminal as _;
use std::io::Write;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use rustix::termios;

/// Standard output: on a terminal, an answer with more lines than that has goes through a pager.
#[derive(Debug)]
pub(super) struct Paged {
    /// The pager, as a command of the shell, and the lines that need none.
    pager: Option<(OsString, usize)>,
    /// What is written so far, while it may be short.
    waiting: Vec<u8>,
    lines: usize,
    child: Option<Child>,
}

impl Paged {
    /// Without a pager where standard output is no terminal, or `is_wanted` is false.
    pub(super) fn new(is_wanted: bool) -> Self {
        let pager = is_wanted && io::stdout().is_terminal();
        let size = pager.then(|| termios::tcgetwinsize(io::stdout()).ok()).flatten();
        // The line of the shell's prompt stays visible.
        let lines = size.map(|size| usize::from(size.ws_row).saturating_sub(1));
        let command = std::env::var_os("PAGER").unwrap_or_else(|| "less".into());
        let is_none = command.is_empty() || command == "cat";
        Self::through(lines.filter(|lines| *lines > 0 && !is_none).map(|lines| (command, lines)))
    }

    fn through(pager: Option<(OsString, usize)>) -> Self {
        Self { pager, waiting: Vec::new(), lines: 0, child: None }
    }

    /// Writes what waits, and waits until the pager ends.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let written = match waiting.is_empty() {
            true => Ok(()),
            false => io::stdout().write_all(&waiting).and_then(|()| io::stdout().flush()),
        };
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            child.wait()?;
        }
        written
    }

    /// Starts the pager; `None` where it cannot be started.
    fn start(command: &OsString) -> Option<Child> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command).stdin(Stdio::piped());
        if std::env::var_os("LESS").is_none() {
            // Long lines are cut at the edge, and the arrow keys move sideways.
            shell.env("LESS", "FRSX");
        }
        shell.spawn().ok()
    }
}

impl Write for Paged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(stdin) = self.child.as_mut().and_then(|child| child.stdin.as_mut()) {
            return stdin.write(bytes);
        }
        let Some((command, most)) = &self.pager else { return io::stdout().write(bytes) };
        self.lines += bytes.iter().filter(|byte| **byte == b'\n').count();
        self.waiting.extend_from_slice(bytes);
        if self.lines > *most {
            let waiting = std::mem::take(&mut self.waiting);
            self.child = Self::start(command);
            self.pager = None;
            self.write_all(&waiting)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.child.as_mut().and_then(|child| child.stdin.as_mut()) {
            Some(stdin) => stdin.flush(),
            None => io::stdout().flush(),
        }
    }
}

impl Drop for Paged {
    fn drop(&mut self) {
        // An answer that failed: its error is reported.
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn long_answers_go_through_the_pager() {
        let file = std::env::temp_dir().join(format!("gannet-pager-{}", std::process::id()));
        let command = OsString::from(format!("cat > '{}'", file.display()));
        let mut long = Paged::through(Some((command.clone(), 2)));
        for line in ["one\n", "two\n", "three\n", "four\n"] {
            long.write_all(line.as_bytes()).unwrap();
        }
        long.finish().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "one\ntwo\nthree\nfour\n");
        fs::remove_file(&file).unwrap();
        let mut short = Paged::through(Some((command, 2)));
        short.write_all(b"one\ntwo\n").unwrap();
        short.finish().unwrap();
        assert!(!file.exists());
    }

    #[test]
    fn a_pager_that_ends_early_closes_its_input() {
        let mut paged = Paged::through(Some(("true".into(), 0)));
        let line = [b'x', b'\n'].repeat(1 << 16);
        let failed = (0..100).find_map(|_| paged.write_all(&line).err());
        assert_eq!(failed.map(|e| e.kind()), Some(io::ErrorKind::BrokenPipe));
        paged.finish().unwrap();
    }
}
