//! The import graph: paths are resolved to the files of the items that they refer to.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::VecDeque;
use std::fmt;

use super::source::Path;
use super::source::Source;

/// The modules between the root of the crate and a file, by name.
type Module = Vec<String>;

/// The names that a file imports, by the file that has them.
type Imports = BTreeMap<Module, BTreeSet<String>>;

/// The files of a crate, and their imports of each other.
pub(super) struct Graph {
    imports: BTreeMap<Module, Imports>,
}

/// Maximum length of a chain of re-exports.
const MAX_STEPS: usize = 16;

impl Graph {
    /// The imports of a crate, by its sources.
    pub(super) fn new(mut sources: BTreeMap<Module, Source>) -> Self {
        let of_tests: BTreeSet<_> = sources
            .iter()
            .flat_map(|(module, source)| source.tests.iter().map(|test| inside(module, test)))
            .collect();
        sources.retain(|module, _| {
            !(1..=module.len()).any(|len| of_tests.contains(module.get(..len).unwrap_or_default()))
        });
        let names = Names::of(&sources);
        let imports = sources
            .iter()
            .map(|(module, source)| (module.clone(), names.imports(&sources, module, source)))
            .collect();
        Self { imports }
    }

    /// Number of pairs of files, one of which imports the other.
    #[cfg(test)]
    pub(super) fn imports(&self) -> usize {
        self.imports.values().map(BTreeMap::len).sum()
    }

    /// Whether a file imports another one; both are paths without their extensions.
    #[cfg(test)]
    pub(super) fn has(&self, from: &str, to: &str) -> bool {
        let module = |file: &str| file.split('/').map(str::to_owned).collect::<Module>();
        self.imports.get(&module(from)).is_some_and(|imports| imports.contains_key(&module(to)))
    }

    /// Disjoint cycles, each the shortest through its files.
    pub(super) fn cycles(&self) -> Vec<Cycle> {
        let (mut all, mut done) = (Vec::new(), BTreeSet::new());
        for module in self.imports.keys() {
            if !done.contains(module)
                && let Some(cycle) = self.cycle(module, &done)
            {
                done.extend(cycle.0.iter().map(|(module, _)| module.clone()));
                all.push(cycle);
            }
        }
        all
    }

    /// The shortest cycle through a file that avoids the files in `without`.
    fn cycle(&self, start: &Module, without: &BTreeSet<Module>) -> Option<Cycle> {
        let mut from = BTreeMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(at) = queue.pop_front() {
            for next in self.imports.get(at).into_iter().flat_map(BTreeMap::keys) {
                if without.contains(next) || from.contains_key(next) {
                    continue;
                }
                from.insert(next, at);
                if next == start {
                    return self.path_to_cycle(start, &from);
                }
                queue.push_back(next);
            }
        }
        None
    }

    /// The cycle through `start`, reconstructed from the predecessor of each file.
    fn path_to_cycle(&self, start: &Module, from: &BTreeMap<&Module, &Module>) -> Option<Cycle> {
        let mut files = VecDeque::new();
        let mut to = start;
        loop {
            let at = *from.get(to)?;
            let names = self.imports.get(at)?.get(to)?;
            files.push_front((at.clone(), names.iter().cloned().collect::<Vec<_>>().join(", ")));
            if at == start {
                return Some(Cycle(files.into()));
            }
            to = at;
        }
    }
}

/// A cycle: each file imports the next one, and the last one the first; with the imported names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cycle(Vec<(Module, String)>);

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let next = self.0.iter().cycle().skip(1);
        for (i, ((from, names), (to, _))) in self.0.iter().zip(next).enumerate() {
            let separator = if i > 0 { "; " } else { "" };
            write!(f, "{separator}{} imports {} ({names})", file(from), file(to))?;
        }
        Ok(())
    }
}

fn file(module: &Module) -> String {
    if module.is_empty() { "lib".to_owned() } else { module.join("/") }
}

fn inside(module: &[String], name: &str) -> Module {
    [module, &[name.to_owned()]].concat()
}

/// The names that files import, and the paths that they refer to.
struct Names<'s> {
    /// The files of the crate.
    modules: BTreeSet<&'s Module>,
    /// For each file and name of a `use`, the path from the root.
    used: BTreeMap<(&'s Module, &'s str), Module>,
}

impl<'s> Names<'s> {
    fn of(sources: &'s BTreeMap<Module, Source>) -> Self {
        let mut names = Self { modules: sources.keys().collect(), used: BTreeMap::new() };
        // The first name of a path may be a module or an earlier import.
        for _ in 0..2 {
            for (module, source) in sources {
                for one in &source.uses {
                    if let Some(name) = &one.name
                        && let Some(path) = names.absolute(module, &one.path)
                    {
                        names.used.insert((module, name), path);
                    }
                }
            }
        }
        names
    }

    /// A path from the root of the crate; `None` for a path outside of it.
    fn absolute(&self, module: &Module, path: &Path) -> Option<Module> {
        let (first, rest) = path.names.split_first()?;
        let here = match first.as_str() {
            "crate" => return Some(rest.to_vec()),
            "self" => return Some([module, rest].concat()),
            "super" => {
                let ups = path.names.iter().take_while(|name| *name == "super").count();
                let rest = path.names.get(ups..)?;
                let len = module.len().checked_sub(ups.saturating_sub(path.depth))?;
                return Some([module.get(..len)?, rest].concat());
            }
            name => inside(module, name),
        };
        if self.modules.contains(&here) {
            return Some([&here, rest].concat());
        }
        let used = self.used.get(&(module, first))?;
        Some([used, rest].concat())
    }

    /// The file that a path refers to, and the first name within it.
    fn resolve(&self, mut path: Module) -> Option<(Module, Option<String>)> {
        for _ in 0..MAX_STEPS {
            let len = (0..=path.len())
                .rev()
                .find(|len| path.get(..*len).is_some_and(|m| self.modules.contains(&m.to_vec())))?;
            let (module, rest) = path.split_at(len);
            let Some((name, behind)) = rest.split_first() else {
                return Some((module.to_vec(), None));
            };
            match self.used.get(&(&module.to_vec(), name.as_str())) {
                Some(used) if *used != path => path = [used, behind].concat(),
                _ => return Some((module.to_vec(), Some(name.clone()))),
            }
        }
        None
    }

    /// The imports of a file.
    fn imports(
        &self,
        sources: &BTreeMap<Module, Source>,
        module: &Module,
        source: &Source,
    ) -> Imports {
        let mut imports = Imports::new();
        let mut add = |path: Option<Module>, whole: bool| {
            let Some((to, name)) = path.and_then(|path| self.resolve(path)) else { return };
            // A glob imports the module itself; otherwise the paths that begin with the module
            // count.
            if to != *module && (whole || name.is_some()) {
                imports.entry(to).or_default().insert(name.unwrap_or_else(|| "*".to_owned()));
            }
        };
        for one in source.uses.iter().filter(|one| !one.is_public) {
            add(self.absolute(module, &one.path), one.name.is_none());
        }
        for path in &source.paths {
            add(self.absolute(module, path), false);
        }
        if source.imports_lists {
            let lists = sources.values().flat_map(|source| &source.lists);
            for (_, list) in lists.filter(|(name, _)| source.calls.contains(name)) {
                for one in list.iter().filter(|one| self.modules.contains(&one.path[..1].to_vec()))
                {
                    add(Some(one.path.clone()), true);
                    for name in &one.names {
                        let path = inside(&one.path, name);
                        let is_shown = self.used.contains_key(&(&one.path, name.as_str()));
                        add(is_shown.then_some(path), false);
                    }
                }
            }
        }
        imports
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The imports of a crate of these files.
    fn graph(files: &[(&str, &str)]) -> Graph {
        let module = |file: &str| {
            file.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect()
        };
        Graph::new(files.iter().map(|(file, text)| (module(file), Source::read(text))).collect())
    }

    fn cycles(files: &[(&str, &str)]) -> Vec<String> {
        graph(files).cycles().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn cycles_are_named() {
        let files = [
            ("", "mod a; mod b; mod c; mod d;"),
            ("a", "use crate::b::B; pub struct A;"),
            ("b", "use super::c; pub struct B(c::C);"),
            ("c", "pub struct C; fn f(a: crate::a::A) {}"),
            ("d", "use crate::a::A;"),
        ];
        assert_eq!(cycles(&files), ["a imports b (B); b imports c (C); c imports a (A)"]);
    }

    #[test]
    fn re_exports_are_followed() {
        let files = [
            ("", "mod a; mod b; pub use a::A; pub use b::x::X as Y;"),
            ("a", "pub struct A(crate::Y);"),
            ("b", "pub mod x; mod y; pub use self::y::Z;"),
            ("b/x", "pub struct X(super::Z);"),
            ("b/y", "use crate::A; pub struct Z(A);"),
        ];
        let graph = graph(&files);
        assert!(graph.has("a", "b/x") && graph.has("b/x", "b/y") && graph.has("b/y", "a"));
        assert!(!graph.has("b", "b/y") && !graph.has("a", "b"));
        assert_eq!(graph.cycles().len(), 1);
    }

    #[test]
    fn a_folder_and_its_files_are_files_like_others() {
        let files = [
            ("", "mod a;"),
            ("a", "mod b; mod c; fn f() { b::g() } pub struct A;"),
            ("a/b", "use super::A; pub fn g() {}"),
            ("a/c", "use super::*;"),
        ];
        assert_eq!(cycles(&files), ["a imports a/b (g); a/b imports a (A)"]);
        assert!(graph(&files).has("a/c", "a"));
    }

    #[test]
    fn modules_within_a_file_are_part_of_it() {
        let files = [
            ("", "mod a; mod b;"),
            ("a", "pub mod x { use super::B; pub fn f() {} } pub struct B;"),
            ("b", "use crate::a::x; fn g() { x::f() }"),
        ];
        let graph = graph(&files);
        assert!(graph.has("b", "a") && !graph.has("a", "") && graph.cycles().is_empty());
    }

    #[test]
    fn the_names_of_a_list_are_imported_by_the_macro_that_receives_it() {
        let list = "macro_rules! with_all { ($t:ident) => { $t! { a { A: X } other b::c; } }; }";
        let each = "macro_rules! each { () => { crate::$m::D }; } with_all!(each);";
        let files = [
            ("", "mod a; mod b; mod list; mod all; mod tags;"),
            ("list", list),
            ("all", each),
            ("tags", "macro_rules! tags { () => { $m } } with_all!(tags);"),
            ("a", "mod x; pub use x::X;"),
            ("a/x", "use crate::all::All;"),
            ("b", "pub mod c;"),
            ("b/c", ""),
        ];
        let graph = graph(&files);
        assert!(graph.has("all", "a") && graph.has("all", "a/x") && graph.has("all", "b/c"));
        assert!(!graph.has("tags", "a") && !graph.has("all", "b"));
        assert_eq!(graph.cycles().len(), 1);
    }

    #[test]
    fn files_of_tests_do_not_count() {
        let files = [
            ("", "mod a; #[cfg(test)] mod testing;"),
            ("a", "pub struct A; #[cfg(test)] mod tests;"),
            ("a/tests", "use crate::testing::T;"),
            ("testing", "use crate::a::A; pub struct T;"),
        ];
        assert_eq!(graph(&files).imports(), 0);
    }
}
