//! File lookup: relative to the loading file, or in the search path.

use std::path::{Component, Path, PathBuf};

use crate::cache::probe::{Kind, kind_at};

/// The file for `name`: with or without `.zeek`, or a folder with its `__load__.zeek`. `folder` is that of the
/// loading file, in which names that begin with `.` are searched.
pub(super) fn script(name: &str, folder: &str, search_path: &[String]) -> Option<PathBuf> {
    let found = find(name, folder, search_path, ".zeek")?;
    if kind_at(&found) == Kind::Folder {
        let load = found.join("__load__.zeek");
        return (kind_at(&load) == Kind::File).then_some(load);
    }
    Some(found)
}

/// The signature file for `name`: with or without `.sig`.
pub(super) fn signatures(name: &str, folder: &str, search_path: &[String]) -> Option<PathBuf> {
    find(name, folder, search_path, ".sig").filter(|path| kind_at(path) == Kind::File)
}

fn find(name: &str, folder: &str, search_path: &[String], extension: &str) -> Option<PathBuf> {
    if Path::new(name).is_absolute() {
        let plain = normal(Path::new(name));
        let mut with = plain.clone().into_os_string();
        with.push(extension);
        let with = PathBuf::from(with);
        return Some(plain)
            .filter(|path| kind_at(path) != Kind::Missing)
            .or_else(|| Some(with).filter(|path| kind_at(path) != Kind::Missing));
    }
    if name.starts_with("./") || name.starts_with("../") || name == "." || name == ".." {
        return in_folder(name, folder, extension);
    }
    search_path.iter().find_map(|folder| in_folder(name, folder, extension))
}

fn in_folder(name: &str, folder: &str, extension: &str) -> Option<PathBuf> {
    let folder = if folder.is_empty() { "." } else { folder };
    let plain = normal(&Path::new(folder).join(name));
    let mut with = plain.clone().into_os_string();
    with.push(extension);
    let with = PathBuf::from(with);
    if kind_at(&with) == Kind::File {
        return Some(with);
    }
    (kind_at(&plain) != Kind::Missing).then_some(plain)
}

/// The path without `.` and `..` components in the middle. A relative path begins with `./` or `../`.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut parts: Vec<Component<'_>> = Vec::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(parts.last(), Some(Component::Normal(_))) => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    let relative = !matches!(
        parts.first(),
        Some(Component::RootDir | Component::Prefix(_) | Component::ParentDir)
    );
    let mut normal = if relative { PathBuf::from(".") } else { PathBuf::new() };
    normal.extend(parts);
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalized() {
        assert_eq!(normal(Path::new("./a/../b.zeek")), Path::new("./b.zeek"));
        assert_eq!(normal(Path::new("b.zeek")), Path::new("./b.zeek"));
        assert_eq!(normal(Path::new("/x/./y/../z")), Path::new("/x/z"));
        assert_eq!(normal(Path::new("../z")), Path::new("../z"));
    }
}
