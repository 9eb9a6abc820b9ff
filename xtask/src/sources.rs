//! The sources of one program or library: its modules, what they define, and what a path means in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, ImplItem, Item, ItemMod, Meta, UseTree, Visibility};

/// The modules below a root file, by their paths; that of the root is empty.
pub struct Sources {
    modules: BTreeMap<Vec<String>, Module>,
    /// True if code for tests is read, too.
    tests: bool,
}

/// What a module has.
#[derive(Default)]
pub struct Module {
    /// All but its imports and its own modules.
    pub items: Vec<Item>,
    imports: Vec<Import>,
    /// Its own modules that anyone may name.
    public_modules: Vec<String>,
}

struct Import {
    /// Nothing if it imports all that a module has.
    name: Option<String>,
    path: Vec<String>,
    public: bool,
}

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    Module(Vec<String>),
    /// The module that defines it, and its name.
    Item(Vec<String>),
    /// A path that begins with the name of another crate.
    Elsewhere(Vec<String>),
}

/// The names in a piece of source text.
#[derive(Default)]
pub struct Names {
    pub paths: BTreeSet<Vec<String>>,
    /// Names behind a dot or a `::`.
    pub members: BTreeSet<String>,
}

/// Imports of imports that are followed.
const MOST_STEPS: usize = 16;

impl Sources {
    /// Reads the file `root` and the modules that it declares, without code for tests.
    ///
    /// # Errors
    /// A file that cannot be read, or is no Rust.
    pub fn read(root: &Path) -> anyhow::Result<Self> {
        Self::open(root, false)
    }

    /// The same with code for tests.
    ///
    /// # Errors
    /// Those of [`Sources::read`].
    pub fn with_tests(root: &Path) -> anyhow::Result<Self> {
        Self::open(root, true)
    }

    fn open(root: &Path, tests: bool) -> anyhow::Result<Self> {
        let mut sources = Self { modules: BTreeMap::new(), tests };
        let children = root.parent().context("a file has a folder")?;
        sources.file(root, children, Vec::new())?;
        Ok(sources)
    }

    fn file(&mut self, file: &Path, children: &Path, path: Vec<String>) -> anyhow::Result<()> {
        let text = fs::read_to_string(file).with_context(|| format!("{}", file.display()))?;
        let parsed = syn::parse_file(&text).with_context(|| format!("{}", file.display()))?;
        self.module(parsed.items, file, children, path)
    }

    fn module(
        &mut self,
        items: Vec<Item>,
        file: &Path,
        children: &Path,
        path: Vec<String>,
    ) -> anyhow::Result<()> {
        let mut module = Module::default();
        for item in items {
            match item {
                item if !self.tests && is_for_tests(attributes(&item)) => {}
                Item::Mod(child) => {
                    let name = child.ident.to_string();
                    if is_public(&child.vis) {
                        module.public_modules.push(name.clone());
                    }
                    let inner: Vec<String> = path.iter().cloned().chain([name]).collect();
                    self.child(child, file, children, inner)?;
                }
                Item::Use(item) => {
                    let public = is_public(&item.vis);
                    imports(&item.tree, Vec::new(), public, &mut module.imports);
                }
                Item::ExternCrate(item) => {
                    let with = item.attrs.iter().find(|a| a.path().is_ident("macro_use"));
                    let mut words = Names::default();
                    if let Some(Meta::List(list)) = with.map(|attribute| &attribute.meta) {
                        words.add(list.tokens.clone());
                    }
                    for word in words.paths {
                        let path = [vec![item.ident.to_string()], word.clone()].concat();
                        module.imports.push(Import {
                            name: word.last().cloned(),
                            path,
                            public: false,
                        });
                    }
                }
                Item::Impl(mut block) => {
                    block.items.retain(|item| self.tests || !is_for_tests(member_attributes(item)));
                    module.items.push(Item::Impl(block));
                }
                item => module.items.push(item),
            }
        }
        for item in &module.items {
            inner_imports(item.to_token_stream(), &mut module.imports);
        }
        self.modules.insert(path, module);
        Ok(())
    }

    fn child(
        &mut self,
        child: ItemMod,
        file: &Path,
        children: &Path,
        path: Vec<String>,
    ) -> anyhow::Result<()> {
        let below = children.join(child.ident.to_string());
        if let Some((_, items)) = child.content {
            return self.module(items, file, &below, path);
        }
        let elsewhere = child.attrs.iter().find_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("path") => {
                let text = pair.value.to_token_stream().to_string();
                Some(text.trim_matches('"').to_owned())
            }
            _ => None,
        });
        if let Some(elsewhere) = elsewhere {
            let file: PathBuf = file.parent().context("a file has a folder")?.join(elsewhere);
            let children = file.parent().context("a file has a folder")?.to_owned();
            return self.file(&file, &children, path);
        }
        let named = below.with_extension("rs");
        let file = if named.exists() { named } else { below.join("mod.rs") };
        self.file(&file, &below, path)
    }

    /// All modules with their paths.
    pub fn modules(&self) -> impl Iterator<Item = (&[String], &Module)> {
        self.modules.iter().map(|(path, module)| (path.as_slice(), module))
    }

    /// What others can name, by the module that defines it and its name, with the shortest of the
    /// paths by which they can.
    pub fn exports(&self) -> BTreeMap<Vec<String>, String> {
        let mut found = BTreeMap::new();
        self.exports_of(&[], &[], &mut found);
        for (path, module) in &self.modules {
            for item in &module.items {
                if let (Item::Macro(_), Some(name)) = (item, name(item))
                    && attributes(item).iter().any(|a| a.path().is_ident("macro_export"))
                {
                    found.insert(join(path, &name), name);
                }
            }
        }
        found
    }

    fn exports_of(
        &self,
        path: &[String],
        shown: &[String],
        found: &mut BTreeMap<Vec<String>, String>,
    ) {
        let Some(module) = self.modules.get(path) else { return };
        let mut add = |item: Vec<String>, shown: String| {
            let old = found.entry(item).or_insert_with(|| shown.clone());
            if shown.len() < old.len() {
                *old = shown;
            }
        };
        for item in module.items.iter().filter(|item| visibility(item).is_some_and(is_public)) {
            if let Some(name) = name(item) {
                add(join(path, &name), join(shown, &name).join("::"));
            }
        }
        let mut inner = Vec::new();
        for child in &module.public_modules {
            inner.push((join(path, child), join(shown, child)));
        }
        for import in module.imports.iter().filter(|import| import.public) {
            match (self.meaning(path, &import.path), &import.name) {
                (Some(Meaning::Item(item)), Some(name)) => add(item, join(shown, name).join("::")),
                (Some(Meaning::Module(module)), name) => {
                    let shown = shown.iter().chain(name).cloned().collect();
                    inner.push((module, shown));
                }
                _ => {}
            }
        }
        for (path, shown) in inner {
            self.exports_of(&path, &shown, found);
        }
    }

    /// True if `module` imports something by that name.
    pub fn is_imported(&self, module: &[String], name: &str) -> bool {
        let imports = self.modules.get(module).map(|module| &module.imports);
        imports.into_iter().flatten().any(|import| import.name.as_deref() == Some(name))
    }

    /// What `path` leads to in `module`.
    pub fn meaning(&self, module: &[String], path: &[String]) -> Option<Meaning> {
        self.follow(module, path, MOST_STEPS)
    }

    fn follow(&self, module: &[String], path: &[String], steps: usize) -> Option<Meaning> {
        let (first, rest) = path.split_first()?;
        let steps = steps.checked_sub(1)?;
        let base = match first.as_str() {
            "crate" => Some(Vec::new()),
            "self" => Some(module.to_vec()),
            "super" => Some(module[..module.len().checked_sub(1)?].to_vec()),
            _ => None,
        };
        if let Some(base) = base {
            return match rest {
                [] => Some(Meaning::Module(base)),
                _ => self.follow(&base, rest, steps),
            };
        }
        let scope = self.modules.get(module)?;
        // A module and a function may share a name: only a module has something behind it.
        let defined = scope.items.iter().any(|item| name(item).as_ref() == Some(first));
        let mut found: Vec<Meaning> = Vec::new();
        found.extend(defined.then(|| Meaning::Item(join(module, first))));
        let child = join(module, first);
        found.extend(self.modules.contains_key(&child).then_some(Meaning::Module(child)));
        for import in scope.imports.iter().filter(|import| import.name.as_ref() == Some(first)) {
            let to_itself = import.path.first() == Some(first) && import.path.len() == 1;
            let meaning = if to_itself { None } else { self.follow(module, &import.path, steps) };
            found.push(meaning.unwrap_or_else(|| Meaning::Elsewhere(import.path.clone())));
        }
        let is_module = |meaning: &&Meaning| matches!(meaning, Meaning::Module(_));
        let best = found.iter().find(|meaning| is_module(meaning) != rest.is_empty());
        if let Some(meaning) = best.or(found.first()) {
            return self.on(meaning.clone(), rest, steps);
        }
        for import in scope.imports.iter().filter(|import| import.name.is_none()) {
            if let Some(Meaning::Module(module)) = self.follow(module, &import.path, steps)
                && let Some(found) = self.follow(&module, path, steps)
                && !matches!(found, Meaning::Elsewhere(_))
            {
                return Some(found);
            }
        }
        Some(Meaning::Elsewhere(path.to_vec()))
    }

    /// What `rest` leads to behind `start`.
    fn on(&self, start: Meaning, rest: &[String], steps: usize) -> Option<Meaning> {
        match start {
            Meaning::Module(module) if !rest.is_empty() => self.follow(&module, rest, steps),
            Meaning::Elsewhere(path) => {
                Some(Meaning::Elsewhere(path.iter().chain(rest).cloned().collect()))
            }
            start => Some(start),
        }
    }
}

impl Module {
    /// The names in it.
    pub fn names(&self) -> Names {
        let mut names = Names::default();
        for item in &self.items {
            names.add(item.to_token_stream());
        }
        names.paths.extend(self.imports.iter().map(|import| import.path.clone()));
        names
    }
}

impl Names {
    /// Adds those of `text`.
    pub fn add(&mut self, text: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut before = String::new();
        for tree in text {
            let now = match &tree {
                TokenTree::Ident(word) => {
                    if before != "::" && !path.is_empty() {
                        self.paths.insert(std::mem::take(&mut path));
                    }
                    if before == "::" || before == "." {
                        self.members.insert(word.to_string());
                    }
                    if before != "." {
                        path.push(word.to_string());
                    }
                    String::new()
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' && before == ":" => "::".to_owned(),
                TokenTree::Punct(mark) => mark.as_char().to_string(),
                TokenTree::Group(group) => {
                    self.add(group.stream());
                    String::new()
                }
                TokenTree::Literal(_) => String::new(),
            };
            let goes_on = matches!(tree, TokenTree::Ident(_)) || now == ":" || now == "::";
            if !goes_on && !path.is_empty() {
                self.paths.insert(std::mem::take(&mut path));
            }
            before = now;
        }
        if !path.is_empty() {
            self.paths.insert(path);
        }
    }
}

/// The imports inside functions.
fn inner_imports(text: TokenStream, found: &mut Vec<Import>) {
    let mut trees = text.into_iter();
    while let Some(tree) = trees.next() {
        match tree {
            TokenTree::Group(group) => inner_imports(group.stream(), found),
            TokenTree::Ident(word) if word == "use" => {
                let end =
                    |tree: &TokenTree| !matches!(tree, TokenTree::Punct(p) if p.as_char() == ';');
                let text: TokenStream = trees.by_ref().take_while(end).collect();
                if let Ok(tree) = syn::parse2::<UseTree>(text) {
                    imports(&tree, Vec::new(), false, found);
                }
            }
            _ => {}
        }
    }
}

fn imports(tree: &UseTree, mut path: Vec<String>, public: bool, found: &mut Vec<Import>) {
    let (word, name) = match tree {
        UseTree::Path(step) => {
            path.push(step.ident.to_string());
            return imports(&step.tree, path, public, found);
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                imports(tree, path.clone(), public, found);
            }
            return;
        }
        UseTree::Glob(_) => return found.push(Import { name: None, path, public }),
        UseTree::Name(leaf) => (leaf.ident.to_string(), leaf.ident.to_string()),
        UseTree::Rename(leaf) => (leaf.ident.to_string(), leaf.rename.to_string()),
    };
    let name = match path.last() {
        Some(last) if word == "self" && name == "self" => last.clone(),
        _ => name,
    };
    if word != "self" {
        path.push(word);
    }
    found.push(Import { name: Some(name), path, public });
}

fn join(path: &[String], name: &str) -> Vec<String> {
    path.iter().cloned().chain([name.to_owned()]).collect()
}

/// True for `#[cfg(test)]` and `#[cfg(all(test, …))]`.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).any(|attribute| {
        let Meta::List(list) = &attribute.meta else { return false };
        let text = list.tokens.to_string().replace(' ', "");
        text == "test" || text.starts_with("all(test,")
    })
}

/// True for `pub` alone.
pub fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// The name that an item defines.
pub fn name(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Macro(item) => item.ident.as_ref()?.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Union(item) => item.ident.to_string(),
        _ => return None,
    })
}

fn visibility(item: &Item) -> Option<&Visibility> {
    Some(match item {
        Item::Const(item) => &item.vis,
        Item::Enum(item) => &item.vis,
        Item::Fn(item) => &item.vis,
        Item::Static(item) => &item.vis,
        Item::Struct(item) => &item.vis,
        Item::Trait(item) => &item.vis,
        Item::Type(item) => &item.vis,
        Item::Union(item) => &item.vis,
        _ => return None,
    })
}

/// The attributes of an item.
pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn member_attributes(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(item) => &item.attrs,
        ImplItem::Fn(item) => &item.attrs,
        _ => &[],
    }
}
