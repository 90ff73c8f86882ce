/// The streams to write.
///
/// By default all streams except those that are [opt-in](crate::Row::OPT_IN).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Whether streams that are not opt-in are written.
    default: bool,
    /// Whether streams that are opt-in are written.
    opt_in: bool,
    /// Names of further streams.
    names: Vec<String>,
}

impl Default for Selection {
    fn default() -> Self {
        Self { default: true, opt_in: false, names: Vec::new() }
    }
}

impl Selection {
    /// Names of groups of streams, with descriptions.
    pub const GROUPS: [(&'static str, &'static str); 3] = [
        ("default", "the logs that are written where none is named"),
        ("policy", "the logs that are written only where they are asked for"),
        ("all", "both"),
    ];

    /// Selects streams and groups of streams by name.
    pub fn of<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        let mut selection = Self { default: false, opt_in: false, names: Vec::new() };
        for name in names {
            match name.into().as_str() {
                "default" => selection.default = true,
                "policy" => selection.opt_in = true,
                "all" => (selection.default, selection.opt_in) = (true, true),
                name => selection.names.push(name.to_owned()),
            }
        }
        selection
    }

    /// Whether a stream is written.
    pub fn has(&self, path: &str, opt_in: bool) -> bool {
        let group = if opt_in { self.opt_in } else { self.default };
        group || self.names.iter().any(|n| n == path)
    }

    /// Whether the stream of a row type is written.
    pub fn wants<R: crate::Row>(&self) -> bool {
        self.has(R::PATH, R::OPT_IN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_names() {
        let has = |names: &[&str]| {
            let selection = Selection::of(names.iter().copied());
            [("conn", false), ("dns", false), ("software", true), ("known_hosts", true)]
                .map(|(path, opt_in)| selection.has(path, opt_in))
        };
        assert_eq!(has(&["conn", "software"]), [true, false, true, false]);
        assert_eq!(has(&["default", "software"]), [true, true, true, false]);
        assert_eq!(has(&["policy"]), [false, false, true, true]);
        assert_eq!(has(&["all"]), [true; 4]);
        assert!(Selection::default().has("conn", false));
        assert!(!Selection::default().has("software", true));
    }
}
