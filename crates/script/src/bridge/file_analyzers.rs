//! Analyzers that scripts attached to files.

use gannet_base::Uid;
use hashbrown::HashMap;

use crate::value::Value;

/// Analyzers of files. As in Zeek, requests take effect after the handlers that make them have returned.
#[derive(Default)]
pub(crate) struct FileAnalyzers {
    /// Keys of the analyzers attached to each file.
    attached: HashMap<Uid, Vec<String>>,
    /// Pending requests in order: file, key of the analyzer, and whether it is added or removed.
    requests: Vec<(Uid, String, bool)>,
}

/// The key of an analyzer: its tag and arguments.
fn key(analyzer: &str, args: &Value) -> String {
    format!("{analyzer} {}", args.text())
}

impl FileAnalyzers {
    /// Requests to add an analyzer.
    pub(super) fn add(&mut self, file: Uid, analyzer: &str, args: &Value) {
        self.requests.push((file, key(analyzer, args), true));
    }

    /// Requests to remove an analyzer; returns whether it is attached.
    pub(super) fn remove(&mut self, file: Uid, analyzer: &str, args: &Value) -> bool {
        let key = key(analyzer, args);
        let has = self.attached.get(&file).is_some_and(|all| all.contains(&key));
        self.requests.push((file, key, false));
        has
    }

    /// Applies the requests after the handlers have returned.
    pub(super) fn apply_requests(&mut self) {
        for (file, key, is_added) in self.requests.drain(..) {
            let all = self.attached.entry(file).or_default();
            all.retain(|known| *known != key);
            if is_added {
                all.push(key);
            }
        }
    }

    /// Drops the analyzers of a file that has ended.
    pub(super) fn forget(&mut self, file: Uid) {
        self.requests.retain(|(requested, ..)| *requested != file);
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
        all.apply_requests();
        assert!(!all.remove(file, "SHA1", &none) && !all.remove(file, "MD5", &other));
        assert!(all.remove(file, "MD5", &none) && all.remove(file, "MD5", &none));
        all.apply_requests();
        assert!(!all.remove(file, "MD5", &none));
        all.add(file, "MD5", &none);
        all.forget(file);
        all.apply_requests();
        assert!(!all.remove(file, "MD5", &none));
    }
}
