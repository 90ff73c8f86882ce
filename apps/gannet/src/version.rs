//! `gannet --version --verbose`: version, commit, libraries and features of this build.

use crate::out;
use crate::outcome::Outcome;

/// Features of the build, and whether it has them.
macro_rules! features {
    ($($name:literal)*) => {
        &[$(($name, cfg!(feature = $name))),*]
    };
}

/// All features of the command; a test compares them with the manifest.
const FEATURES: &[(&str, bool)] =
    features!("columns" "foreign" "jit" "kafka" "llvm" "lua" "quic" "self-signed" "sql" "sqlite");

/// Whether the arguments, including the command's own name, request the long version.
pub(crate) fn is_requested(args: &[std::ffi::OsString]) -> bool {
    let has = |names: [&str; 2]| args.iter().skip(1).any(|a| names.iter().any(|n| a == n));
    args.len() == 3 && has(["--version", "-V"]) && has(["--verbose", "-v"])
}

/// Prints version, commit, target, libraries and features.
pub(crate) fn print() -> anyhow::Result<Outcome> {
    let list = |is_there: bool| {
        let names = FEATURES.iter().filter(|(_, has)| *has == is_there).map(|(name, _)| *name);
        let names: Vec<_> = names.collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let linked = if cfg!(target_feature = "crt-static") { "static" } else { "dynamic" };
    let libc = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    // Packages are built with both of these.
    let commit = option_env!("GANNET_COMMIT").unwrap_or("unknown");
    let kind = if cfg!(debug_assertions) { "debug" } else { "release" };
    let profile = option_env!("GANNET_PROFILE").unwrap_or(kind);
    out::write(
        format!(
            "gannet {}\ncommit: {commit}\ntarget: {}-{}-{libc}, {linked}\nprofile: {profile}\nfeatures: {}\nwithout: {}\n",
            env!("CARGO_PKG_VERSION"),
            std::env::consts::ARCH,
            std::env::consts::OS,
            list(true),
            list(false),
        )
        .as_bytes(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All features of the manifest, but for those that are sets of others.
    #[test]
    fn no_feature_is_missing() {
        let manifest = include_str!("../Cargo.toml");
        let (_, features) = manifest.split_once("\n[features]\n").unwrap();
        let (features, _) = features.split_once("\n[").unwrap();
        let names = features.lines().filter_map(|line| line.split_once(" = "));
        let names = names.map(|(name, _)| name).filter(|name| !["default", "full"].contains(name));
        let mut names: Vec<_> = names.filter(|name| !name.starts_with('#')).collect();
        names.sort_unstable();
        let listed: Vec<_> = FEATURES.iter().map(|(name, _)| *name).collect();
        assert_eq!(listed, names);
    }

    #[test]
    fn both_orders_of_options_are_accepted() {
        let is = |args: &[&str]| is_requested(&args.iter().map(Into::into).collect::<Vec<_>>());
        assert!(is(&["gannet", "--version", "--verbose"]) && is(&["gannet", "-v", "-V"]));
        assert!(!is(&["gannet", "--version"]) && !is(&["gannet", "info", "--verbose"]));
    }
}
