//! Options that a running sensor reads again.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::args::Args;

/// Options that a running sensor applies. All others need a restart.
pub(crate) const RELOADABLE: [&str; 4] = ["duration", "keep", "rotate", "rotate-compress"];

/// Options from the file and the command line.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    /// The text of each option by name.
    pub(crate) values: BTreeMap<String, String>,
    pub(crate) args: Box<Args>,
}

/// Reads the options again.
type Reader = dyn Fn() -> Result<Read, String> + Send + Sync;

/// Reads the options of a sensor again.
#[derive(Clone)]
pub(crate) struct Reload {
    /// The file of options.
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

/// The names of options that differ: those that are applied, and the others.
pub(crate) fn changes<'a>(
    before: &'a BTreeMap<String, String>,
    after: &'a BTreeMap<String, String>,
) -> (Vec<&'a str>, Vec<&'a str>) {
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    names
        .filter(|name| before.get(*name) != after.get(*name))
        .map(String::as_str)
        .partition(|name| RELOADABLE.contains(name))
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
