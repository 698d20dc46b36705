//! Modules of a crate use each other in one direction only.
//!
//! This reads `use` lines and `crate::`, `super::` and `self::` paths as text. A name that a module
//! re-exports counts as the module that defines it, so `crate::Item` leads to the file with `Item`.
//! Test modules are left out. At each level the children and the parent's own file are the nodes.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::LazyLock,
};

use regex::Regex;

/// A module's path inside its crate; the crate itself is the empty path.
type Module = Vec<String>;

static COMMENT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"//[^\n]*").unwrap());
static TEXT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#""(\\.|[^"\\])*""#).unwrap());
static USE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)^[ \n]*(pub(?:\([^)]*\))?[ \n]+)?use[ \n]+([^;]+);").unwrap()
});
static PATH: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?-u:\b)((?:crate|super|self)(?:::[A-Za-z0-9_]+)+)").unwrap());
static ALIAS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[ \n]+as[ \n]+[A-Za-z0-9_]+").unwrap());
static DEFINED: LazyLock<Regex> = LazyLock::new(|| {
    let item = r"(?:fn|struct|enum|trait|type|const|static|macro_rules!)";
    Regex::new(&format!(r"(?m)^[ \n]*(?:pub(?:\([^)]*\))?[ \n]+)?(?:async[ \n]+|const[ \n]+)?{item}[ \n]+([A-Za-z0-9_]+)"))
        .unwrap()
});

struct Use {
    path: Vec<String>,
    is_re_export: bool,
}

struct Source {
    defines: BTreeSet<String>,
    uses: Vec<Use>,
}

/// The modules of one crate.
pub(crate) struct Modules(BTreeMap<Module, Source>);

impl Modules {
    /// Reads every file below a crate's `src` folder.
    pub(crate) fn read(src: &Path) -> Self {
        let mut modules = BTreeMap::new();
        read_folder(src, &mut Vec::new(), &mut modules);
        Self(modules)
    }

    /// How many modules were read.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Each group of modules that lead back to each other.
    pub(crate) fn cycles(&self) -> Vec<String> {
        let mut uses: BTreeSet<(&Module, Module)> = BTreeSet::new();
        for (module, source) in &self.0 {
            for each in source.uses.iter().filter(|each| !each.is_re_export) {
                let Some((base, rest)) = self.absolute(module, &each.path) else { continue };
                let used = self.defining(base, &rest, &mut BTreeSet::new());
                if used != *module {
                    uses.insert((module, used));
                }
            }
        }
        let parents: BTreeSet<&[String]> =
            self.0.keys().filter_map(|module| module.split_last()).map(|(_, up)| up).collect();
        let mut found = Vec::new();
        for parent in parents {
            let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            for (from, to) in &uses {
                let (Some(from), Some(to)) = (child(parent, from), child(parent, to)) else {
                    continue;
                };
                if from != to {
                    graph.entry(from).or_default().insert(to);
                }
            }
            let cyclic: Vec<&String> =
                graph.keys().filter(|node| reaches(&graph, node, node)).collect();
            if !cyclic.is_empty() {
                found.push(format!("crate::{}: {cyclic:?}", parent.join("::")));
            }
        }
        found
    }

    /// A path's starting module and what is left of it; `None` for other crates.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<(Module, Vec<String>)> {
        let mut base = module.clone();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => (base, rest) = (Vec::new(), &path[1..]),
            "self" => rest = &path[1..],
            "super" => {
                while let Some(("super", tail)) = rest.split_first().map(|(a, b)| (a.as_str(), b)) {
                    base.pop();
                    rest = tail;
                }
            }
            first => {
                let below = [module.as_slice(), &[first.to_owned()]].concat();
                self.0.get(&below)?;
            }
        }
        Some((base, rest.to_vec()))
    }

    /// The module in which a path's item is defined.
    fn defining(
        &self,
        mut base: Module,
        path: &[String],
        seen: &mut BTreeSet<(Module, String)>,
    ) -> Module {
        let mut rest = path;
        while let Some((first, tail)) = rest.split_first() {
            let below = [base.as_slice(), std::slice::from_ref(first)].concat();
            if !self.0.contains_key(&below) {
                break;
            }
            (base, rest) = (below, tail);
        }
        let Some(name) = rest.first().filter(|name| *name != "*" && *name != "self") else {
            return base;
        };
        let Some(source) = self.0.get(&base) else { return base };
        if source.defines.contains(name) || !seen.insert((base.clone(), name.clone())) {
            return base;
        }
        for each in &source.uses {
            let Some((from, path)) = self.absolute(&base, &each.path) else { continue };
            match path.last().map(String::as_str) {
                Some(last) if last == name => return self.defining(from, &path, seen),
                Some("*") => {
                    let all = self.defining(from, &path[..path.len() - 1], seen);
                    let there = self.defining(all.clone(), std::slice::from_ref(name), seen);
                    let defines = |module| self.0[module].defines.contains(name);
                    if self.0.contains_key(&there) && defines(&there) {
                        return there;
                    }
                }
                _ => {}
            }
        }
        base
    }
}

fn child(parent: &[String], module: &Module) -> Option<String> {
    let rest = module.strip_prefix(parent)?;
    Some(rest.first().map_or("(its own file)", String::as_str).to_owned())
}

fn reaches(graph: &BTreeMap<String, BTreeSet<String>>, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(node) = waiting.pop() {
        for next in graph.get(node).into_iter().flatten() {
            if next == to {
                return true;
            }
            if seen.insert(next.as_str()) {
                waiting.push(next);
            }
        }
    }
    false
}

fn read_folder(folder: &Path, module: &mut Module, modules: &mut BTreeMap<Module, Source>) {
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let is_for_tests = name == "tests" || name == "suite";
        if is_for_tests {
            continue;
        }
        if path.is_dir() {
            module.push(name);
            read_folder(&path, module, modules);
            module.pop();
        } else if path.extension().is_some_and(|e| e == "rs") {
            let mut own = module.clone();
            if name != "mod" && name != "lib" {
                own.push(name);
            }
            modules.insert(own, read_source(&std::fs::read_to_string(&path).unwrap()));
        }
    }
}

fn read_source(text: &str) -> Source {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let text = COMMENT.replace_all(text, "");
    let text = TEXT.replace_all(&text, "\"\"");
    let defines = DEFINED.captures_iter(&text).map(|found| found[1].to_owned()).collect();
    let mut uses = Vec::new();
    for found in USE.captures_iter(&text) {
        let is_re_export = found.get(1).is_some();
        let mut paths = Vec::new();
        expand(&[], &found[2], &mut paths);
        uses.extend(paths.into_iter().map(|path| Use { path, is_re_export }));
    }
    let body = USE.replace_all(&text, "");
    for found in PATH.captures_iter(&body) {
        let path = found[1].split("::").map(str::to_owned).collect();
        uses.push(Use { path, is_re_export: false });
    }
    Source { defines, uses }
}

/// Writes out every path of a `use` tree.
fn expand(prefix: &[String], tree: &str, paths: &mut Vec<Vec<String>>) {
    let (head, group) = match tree.split_once('{') {
        Some((head, rest)) => (head, rest.rsplit_once('}').map(|(group, _)| group)),
        None => (tree, None),
    };
    let head = ALIAS.replace(head, "");
    let parts = head.split("::").map(str::trim).filter(|part| !part.is_empty());
    let path: Vec<String> = prefix.iter().cloned().chain(parts.map(str::to_owned)).collect();
    let Some(group) = group else {
        if !path.is_empty() {
            paths.push(path);
        }
        return;
    };
    let (mut depth, mut begin) = (0, 0);
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&path, &group[begin..at], paths);
                begin = at + 1;
            }
            _ => {}
        }
    }
    let last = group[begin..].trim();
    if !last.is_empty() {
        expand(&path, last, paths);
    }
}
