//! Options that are read again while a sensor runs.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::args::Args;

/// Options that a running sensor takes over. All others need a restart.
pub(crate) const TAKEN: [&str; 4] = ["duration", "keep", "rotate", "rotate-compress"];

/// Options as they are in the file and on the command line.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    /// By name, as text.
    pub(crate) values: BTreeMap<String, String>,
    pub(crate) args: Box<Args>,
}

/// Reads the options again.
type Reader = dyn Fn() -> Result<Read, String> + Send + Sync;

/// How the options of a sensor are read again.
#[derive(Clone)]
pub(crate) struct Reload {
    /// The file that they come from.
    pub(crate) file: PathBuf,
    read: Arc<Reader>,
}

impl Reload {
    pub(crate) fn new(
        file: PathBuf,
        read: impl Fn() -> Result<Read, String> + Send + Sync + 'static,
    ) -> Self {
        Self { file, read: Arc::new(read) }
    }

    pub(crate) fn read(&self) -> Result<Read, String> {
        (self.read)()
    }
}

impl fmt::Debug for Reload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reload").field(&self.file).finish()
    }
}

/// The names of options that differ: those that are taken over, and the others.
pub(crate) fn changes<'a>(
    before: &'a BTreeMap<String, String>,
    after: &'a BTreeMap<String, String>,
) -> (Vec<&'a str>, Vec<&'a str>) {
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    names
        .filter(|name| before.get(*name) != after.get(*name))
        .map(String::as_str)
        .partition(|name| TAKEN.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_need_a_restart_are_separate() {
        let of = |all: &[(&str, &str)]| {
            all.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
        };
        let before = of(&[("rotate", "1h"), ("out", "a"), ("json", "true")]);
        let after = of(&[("rotate", "2h"), ("out", "b"), ("json", "true"), ("keep", "30d")]);
        assert_eq!(changes(&before, &after), (vec!["rotate", "keep"], vec!["out"]));
        assert_eq!(changes(&before, &before), (vec![], vec![]));
    }
}
