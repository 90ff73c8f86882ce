//! A pager for results that are longer than the terminal.

use std::ffi::OsString;
use std::io;
use std::io::IsTerminal as _;
use std::io::Write;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use rustix::termios;

/// Standard output: on a terminal, results with more lines than the terminal go through a pager.
#[derive(Debug)]
pub(super) struct Paged {
    /// The pager, as a shell command, and the number of lines that are shown without it.
    pager: Option<(OsString, usize)>,
    /// Buffered output while it is short enough for the terminal.
    buffered: Vec<u8>,
    lines: usize,
    child: Option<Child>,
}

impl Paged {
    /// Uses a pager if `is_wanted` and standard output is a terminal.
    pub(super) fn new(is_wanted: bool) -> Self {
        let pager = is_wanted && io::stdout().is_terminal();
        let size = pager.then(|| termios::tcgetwinsize(io::stdout()).ok()).flatten();
        // One line is left for the shell's prompt.
        let lines = size.map(|size| usize::from(size.ws_row).saturating_sub(1));
        let command = std::env::var_os("PAGER").unwrap_or_else(|| "less".into());
        let is_none = command.is_empty() || command == "cat";
        Self::through(lines.filter(|lines| *lines > 0 && !is_none).map(|lines| (command, lines)))
    }

    fn through(pager: Option<(OsString, usize)>) -> Self {
        Self { pager, buffered: Vec::new(), lines: 0, child: None }
    }

    /// Writes buffered output, and waits until the pager ends.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        let buffered = std::mem::take(&mut self.buffered);
        let written = match buffered.is_empty() {
            true => Ok(()),
            false => io::stdout().write_all(&buffered).and_then(|()| io::stdout().flush()),
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
            // -S: long lines are cut at the edge, and the arrow keys scroll sideways.
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
        let Some((command, max_lines)) = &self.pager else { return io::stdout().write(bytes) };
        self.lines += bytes.iter().filter(|byte| **byte == b'\n').count();
        self.buffered.extend_from_slice(bytes);
        if self.lines > *max_lines {
            let buffered = std::mem::take(&mut self.buffered);
            self.child = Self::start(command);
            self.pager = None;
            self.write_all(&buffered)?;
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
        // The result failed, and its error is reported already.
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
