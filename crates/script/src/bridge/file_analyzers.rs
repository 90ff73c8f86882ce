//! The analyzers that scripts added to files.

use gannet_base::Uid;
use hashbrown::HashMap;

use crate::value::Value;

/// Analyzers of files. What handlers ask for takes effect once they have run, as in Zeek.
#[derive(Default)]
pub(crate) struct FileAnalyzers {
    /// Those that a file has, each with its arguments.
    attached: HashMap<Uid, Vec<String>>,
    /// What was asked for, in order: the file, and whether to add the analyzer.
    asked: Vec<(Uid, String, bool)>,
}

/// Analyzers of one kind with other arguments are others.
fn key(analyzer: &str, args: &Value) -> String {
    format!("{analyzer} {}", args.text())
}

impl FileAnalyzers {
    /// An analyzer is to be added.
    pub(super) fn add(&mut self, file: Uid, analyzer: &str, args: &Value) {
        self.asked.push((file, key(analyzer, args), true));
    }

    /// An analyzer is to be removed; whether the file has it.
    pub(super) fn remove(&mut self, file: Uid, analyzer: &str, args: &Value) -> bool {
        let key = key(analyzer, args);
        let has = self.attached.get(&file).is_some_and(|all| all.contains(&key));
        self.asked.push((file, key, false));
        has
    }

    /// Handlers have run.
    pub(super) fn change(&mut self) {
        for (file, key, is_added) in self.asked.drain(..) {
            let all = self.attached.entry(file).or_default();
            all.retain(|known| *known != key);
            if is_added {
                all.push(key);
            }
        }
    }

    /// A file is over.
    pub(super) fn forget(&mut self, file: Uid) {
        self.asked.retain(|(of, ..)| *of != file);
        self.attached.remove(&file);
    }
}

#[cfg(test)]
mod tests {
    use gannet_base::UidSource;

    use super::*;

    #[test]
    fn changes_take_effect_once_handlers_have_run() {
        let uids = UidSource::new(1);
        let file = uids.file(uids.connection(1, 0), 1);
        let mut all = FileAnalyzers::default();
        let (none, other) = (Value::string(""), Value::string("x"));
        all.add(file, "MD5", &none);
        assert!(!all.remove(file, "SHA1", &none) && !all.remove(file, "SHA1", &none));
        all.add(file, "SHA1", &none);
        assert!(!all.remove(file, "SHA1", &none));
        all.change();
        assert!(!all.remove(file, "SHA1", &none) && !all.remove(file, "MD5", &other));
        assert!(all.remove(file, "MD5", &none) && all.remove(file, "MD5", &none));
        all.change();
        assert!(!all.remove(file, "MD5", &none));
        all.add(file, "MD5", &none);
        all.forget(file);
        all.change();
        assert!(!all.remove(file, "MD5", &none));
    }
}
