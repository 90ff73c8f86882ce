//! The options that an index depends on.

use std::fmt;

/// Options of an analysis that decide which packets belong to which uid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Analysis {
    /// Checksums are not verified.
    pub ignores_checksums: bool,
    /// Only packets that match a filter are analysed.
    pub is_filtered: bool,
    /// The seed of uids.
    pub seed: u64,
}

impl Analysis {
    /// Extracts these options from those of an engine.
    pub fn of(options: &gannet_engine::Options) -> Self {
        let gannet_engine::Options { ignore_checksums, filter, seed, .. } = options;
        Self { ignores_checksums: *ignore_checksums, is_filtered: filter.is_some(), seed: *seed }
    }
}

/// Formats as options of the command line.
impl fmt::Display for Analysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut options = Vec::new();
        if self.ignores_checksums {
            options.push("-C".to_owned());
        }
        if self.is_filtered {
            options.push("-f".to_owned());
        }
        if self.seed != 0 {
            options.push(format!("--seed {}", self.seed));
        }
        if options.is_empty() { f.write_str("no options") } else { f.write_str(&options.join(" ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::Analysis;

    #[test]
    fn analyses_are_named_by_their_options() {
        assert_eq!(Analysis::default().to_string(), "no options");
        let all = Analysis { ignores_checksums: true, is_filtered: true, seed: 7 };
        assert_eq!(all.to_string(), "-C -f --seed 7");
    }
}
