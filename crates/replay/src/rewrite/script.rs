//! Scripts: import specifiers, and the global names that would show the archive's address. A parser
//! finds them; every other byte stays. A script that does not parse stays whole.

use std::{borrow::Cow, thread};

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    ArrowFunctionExpression, AssignmentTargetPropertyIdentifier, BindingIdentifier, BindingPattern,
    CatchClause, Class, ComputedMemberExpression, ExportAllDeclaration, ExportFromDeclaration,
    Expression, Function, IdentifierReference, ImportDeclaration, ImportExpression, ObjectProperty,
    PropertyKey, StaticMemberExpression, StringLiteral, VariableDeclaration,
    VariableDeclarationKind, VariableDeclarator, WithStatement,
};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::{ParseOptions, Parser};
use oxc_span::{SourceType, Span};
use oxc_syntax::scope::{ScopeFlags, ScopeId};

use super::{edits::Edits, links::Links, nesting};
use crate::modifier::Modifier;

/// The longest script that is parsed; parsing takes about ten times its size.
const MAX_BYTES: usize = 16 << 20;
/// The stack for parsing: enough for the deepest script that is parsed.
const STACK_BYTES: usize = 64 << 20;

/// Names that cannot be replaced in a window, and what stands for them.
const NAMES: [(&str, &str); 2] = [("location", "__nenrin_location"), ("top", "__nenrin_top")];
/// Objects that have these names as properties.
const OWNERS: [&str; 4] = ["window", "self", "globalThis", "document"];

/// Rewrites a script; `None` if nothing changes.
pub(crate) fn rewrite(script: &[u8], links: &Links) -> Option<Vec<u8>> {
    rewrite_as(script, links, false)
}

/// Rewrites the value of an attribute such as `onclick`, which is the body of a function.
pub(crate) fn rewrite_handler(script: &[u8], links: &Links) -> Option<Vec<u8>> {
    rewrite_as(script, links, true)
}

fn rewrite_as(script: &[u8], links: &Links, is_body: bool) -> Option<Vec<u8>> {
    let names = [&b"import"[..], b"export", b"location", b"top"];
    let is_named = names.iter().any(|name| memchr::memmem::find(script, name).is_some());
    if !is_named || script.len() > MAX_BYTES {
        return None;
    }
    let text = readable(script);
    let text = &*text;
    if !nesting::is_shallow(text.trim_start_matches('\u{feff}').as_bytes()) {
        return None;
    }
    let found = thread::scope(|scope| {
        let parsing = thread::Builder::new().stack_size(STACK_BYTES);
        let parsing = parsing.spawn_scoped(scope, || found(text, is_body)).ok()?;
        parsing.join().ok()?
    })?;
    let mut edits = Edits::default();
    for place in found {
        let range = place.span.start as usize..place.span.end as usize;
        match place.what {
            What::Text(new) => edits.replace(range, new),
            What::Specifier => {
                let range = range.start + 1..range.end.saturating_sub(1);
                let specifier = script.get(range.clone())?;
                if !specifier.contains(&b'\\')
                    && let Some(new) = links.rewrite(specifier, Modifier::Script)
                {
                    edits.replace(range, new);
                }
            }
        }
    }
    (!edits.is_empty()).then(|| edits.apply(script))
}

/// The script as text of the same length. In old encodings every byte outside ASCII, and a backslash
/// that is half a character, becomes a letter: they are in strings and comments.
fn readable(script: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(script) {
        return Cow::Borrowed(text);
    }
    let mut is_lead = false;
    let letter = |&byte: &u8| {
        let is_half = is_lead && byte == b'\\';
        is_lead = byte >= 0x81 && !is_lead;
        if byte >= 0x80 || is_half { 'x' } else { byte as char }
    };
    Cow::Owned(script.iter().map(letter).collect())
}

/// A position that changes.
struct Place {
    span: Span,
    what: What,
}

enum What {
    Text(&'static str),
    /// The address of a module, in quotes.
    Specifier,
}

fn found(text: &str, is_body: bool) -> Option<Vec<Place>> {
    let allocator = Allocator::default();
    let options =
        ParseOptions { allow_return_outside_function: is_body, ..ParseOptions::default() };
    let kind = if is_body { SourceType::script() } else { SourceType::unambiguous() };
    let parsed = Parser::new(&allocator, text, kind).with_options(options).parse();
    if parsed.panicked || !parsed.diagnostics.is_empty() {
        return None;
    }
    let mut names = Names::default();
    names.visit_program(&parsed.program);
    let mut places = names.places;
    let scopes = &names.scopes;
    let is_global = |of: &Reference| !shadows(scopes, of.scope, of.name);
    places.extend(
        names
            .references
            .iter()
            .filter(|of| is_global(of))
            .map(|of| Place { span: of.edit, what: What::Text(of.new) }),
    );
    places.sort_by_key(|place| (place.span.start, place.span.end));
    Some(places)
}

/// A name that is edited if it is the global one.
struct Reference {
    scope: usize,
    /// The name that must not be declared around it.
    name: &'static str,
    edit: Span,
    new: &'static str,
}

struct Scope {
    parent: Option<usize>,
    is_function: bool,
    /// The names of interest that are declared in it.
    names: Vec<&'static str>,
}

fn shadows(scopes: &[Scope], from: usize, name: &str) -> bool {
    let mut at = Some(from);
    while let Some(scope) = at.and_then(|number| scopes.get(number)) {
        if scope.names.contains(&name) {
            return true;
        }
        at = scope.parent;
    }
    false
}

/// Finds names and where they are declared.
#[derive(Default)]
struct Names {
    scopes: Vec<Scope>,
    stack: Vec<usize>,
    /// Whether `var` declares what is being read.
    is_var: bool,
    references: Vec<Reference>,
    places: Vec<Place>,
}

impl Names {
    fn scope(&self) -> usize {
        self.stack.last().copied().unwrap_or(0)
    }

    fn declare(&mut self, name: &str, is_var: bool) {
        let known = NAMES.iter().map(|(name, _)| *name).chain(OWNERS).find(|known| *known == name);
        let Some(known) = known else { return };
        let mut at = self.scope();
        while is_var
            && let Some(scope) = self.scopes.get(at)
            && !scope.is_function
            && let Some(parent) = scope.parent
        {
            at = parent;
        }
        if let Some(scope) = self.scopes.get_mut(at) {
            scope.names.push(known);
        }
    }

    fn refer(&mut self, name: &'static str, edit: Span, new: &'static str) {
        let scope = self.scope();
        self.references.push(Reference { scope, name, edit, new });
    }

    /// The owner that an expression names.
    fn owner(expression: &Expression<'_>) -> Option<&'static str> {
        let Expression::Identifier(owner) = expression.get_inner_expression() else { return None };
        OWNERS.into_iter().find(|name| *name == owner.name.as_str())
    }

    fn property(&mut self, owner: &'static str, name: &str, edit: Span) {
        // A document has no top.
        let found = NAMES.into_iter().find(|(known, _)| *known == name);
        if let Some((name, new)) = found
            && !(owner == "document" && name == "top")
        {
            self.refer(owner, edit, new);
        }
    }
}

fn replacement(name: &str) -> Option<(&'static str, &'static str)> {
    NAMES.into_iter().find(|(known, _)| *known == name)
}

/// The same with the name in front, for `{location}`.
fn named(name: &str) -> &'static str {
    if name == "top" { "top:__nenrin_top" } else { "location:__nenrin_location" }
}

impl<'a> Visit<'a> for Names {
    fn enter_scope(&mut self, flags: ScopeFlags, _: &std::cell::Cell<Option<ScopeId>>) {
        let parent = self.stack.last().copied();
        let is_function =
            flags.intersects(ScopeFlags::Top | ScopeFlags::Function | ScopeFlags::ClassStaticBlock);
        self.stack.push(self.scopes.len());
        self.scopes.push(Scope { parent, is_function, names: Vec::new() });
    }

    fn leave_scope(&mut self) {
        self.stack.pop();
    }

    fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
        self.declare(it.name.as_str(), self.is_var);
    }

    fn visit_variable_declaration(&mut self, it: &VariableDeclaration<'a>) {
        let around = std::mem::replace(&mut self.is_var, it.kind == VariableDeclarationKind::Var);
        walk::walk_variable_declaration(self, it);
        self.is_var = around;
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        // `const {location} = window`
        if let (BindingPattern::ObjectPattern(pattern), Some(init)) = (&it.id, &it.init)
            && let Some(owner) = Self::owner(init)
        {
            for property in &pattern.properties {
                if let PropertyKey::StaticIdentifier(key) = &property.key
                    && let Some((name, new)) = replacement(key.name.as_str())
                {
                    let text = match (property.shorthand, name) {
                        (false, _) => new,
                        (true, "top") => "__nenrin_top:top",
                        (true, _) => "__nenrin_location:location",
                    };
                    self.refer(owner, key.span, text);
                }
            }
        }
        walk::walk_variable_declarator(self, it);
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        let around = std::mem::replace(&mut self.is_var, false);
        // Its name is known around it, unless it is part of an expression.
        if let Some(id) = it.id.as_ref().filter(|_| it.is_declaration()) {
            self.declare(id.name.as_str(), true);
        }
        walk::walk_function(self, it, flags);
        self.is_var = around;
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        let around = std::mem::replace(&mut self.is_var, false);
        walk::walk_arrow_function_expression(self, it);
        self.is_var = around;
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        let around = std::mem::replace(&mut self.is_var, false);
        if let Some(id) = it.id.as_ref() {
            self.declare(id.name.as_str(), false);
        }
        walk::walk_class(self, it);
        self.is_var = around;
    }

    fn visit_catch_clause(&mut self, it: &CatchClause<'a>) {
        let around = std::mem::replace(&mut self.is_var, false);
        walk::walk_catch_clause(self, it);
        self.is_var = around;
    }

    /// Inside of `with` a name may be a property: nothing there is certain.
    fn visit_with_statement(&mut self, it: &WithStatement<'a>) {
        self.visit_expression(&it.object);
    }

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        if let Some((name, new)) = replacement(it.name.as_str()) {
            self.refer(name, it.span, new);
        }
    }

    fn visit_object_property(&mut self, it: &ObjectProperty<'a>) {
        match &it.value {
            Expression::Identifier(value) if it.shorthand => {
                if let Some((name, _)) = replacement(value.name.as_str()) {
                    self.refer(name, value.span, named(name));
                }
            }
            _ => walk::walk_object_property(self, it),
        }
    }

    /// `({location} = x)` assigns to the global one.
    fn visit_assignment_target_property_identifier(
        &mut self,
        it: &AssignmentTargetPropertyIdentifier<'a>,
    ) {
        if let Some((name, _)) = replacement(it.binding.name.as_str()) {
            self.refer(name, it.binding.span, named(name));
        }
        if let Some(init) = &it.init {
            self.visit_expression(init);
        }
    }

    fn visit_static_member_expression(&mut self, it: &StaticMemberExpression<'a>) {
        if let Some(owner) = Self::owner(&it.object) {
            self.property(owner, it.property.name.as_str(), it.property.span);
        }
        walk::walk_static_member_expression(self, it);
    }

    fn visit_computed_member_expression(&mut self, it: &ComputedMemberExpression<'a>) {
        if let (Some(owner), Expression::StringLiteral(name)) =
            (Self::owner(&it.object), &it.expression)
        {
            let inside = Span::new(name.span.start + 1, name.span.end - 1);
            self.property(owner, name.value.as_str(), inside);
        }
        walk::walk_computed_member_expression(self, it);
    }

    fn visit_import_declaration(&mut self, it: &ImportDeclaration<'a>) {
        self.specifier(&it.source);
        walk::walk_import_declaration(self, it);
    }

    fn visit_export_from_declaration(&mut self, it: &ExportFromDeclaration<'a>) {
        self.specifier(&it.source);
    }

    fn visit_export_all_declaration(&mut self, it: &ExportAllDeclaration<'a>) {
        self.specifier(&it.source);
    }

    fn visit_import_expression(&mut self, it: &ImportExpression<'a>) {
        use oxc_span::GetSpan;
        match &it.source {
            Expression::StringLiteral(source) => self.specifier(source),
            // What is computed is put right when it is known.
            source => {
                let span = source.span();
                let at = |offset| Span::new(offset, offset);
                self.places.push(Place { span: at(span.start), what: What::Text("__nenrin_to(") });
                self.places.push(Place { span: at(span.end), what: What::Text(")") });
                self.visit_expression(source);
            }
        }
        if let Some(options) = &it.options {
            self.visit_expression(options);
        }
    }
}

impl Names {
    fn specifier(&mut self, source: &StringLiteral<'_>) {
        self.places.push(Place { span: source.span, what: What::Specifier });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nenrin_urls::CanonicalUrl;
    use proptest::prelude::*;

    fn links() -> Links {
        let url = CanonicalUrl::parse("http://e.com/js/main.js").unwrap();
        Links::new(0, Modifier::Script, url)
    }

    fn rewritten(script: &str) -> String {
        let new = rewrite(script.as_bytes(), &links()).unwrap_or(script.as_bytes().to_vec());
        let new = String::from_utf8(new).unwrap().replace("/web/19700101000000", "@@");
        new.replace("__nenrin_location", "LOC").replace("__nenrin_top", "TOP")
    }

    #[test]
    fn specifiers_that_leave_the_path_are_rewritten() {
        for (script, expected) in [
            ("import '/a.js'", "import '@@js_/http://e.com/a.js'"),
            ("import{a}from\"https://f.org/a.js\"", "import{a}from\"@@js_/https://f.org/a.js\""),
            ("import * as b from '//f.org/b.js';", "import * as b from '@@js_/http://f.org/b.js';"),
            ("export * from '/a.js'", "export * from '@@js_/http://e.com/a.js'"),
            ("export {a} from '/a.js'", "export {a} from '@@js_/http://e.com/a.js'"),
            (
                "const m = await import('/m.js')",
                "const m = await import('@@js_/http://e.com/m.js')",
            ),
            ("import(a + '/m.js')", "import(__nenrin_to(a + '/m.js'))"),
            ("import(location.href)", "import(__nenrin_to(LOC.href))"),
            ("a = `${import('/x.js')}`", "a = `${import('@@js_/http://e.com/x.js')}`"),
            ("r = /['\"`]/g; import '/a.js'", "r = /['\"`]/g; import '@@js_/http://e.com/a.js'"),
        ] {
            assert_eq!(rewritten(script), expected, "{script}");
        }
    }

    #[test]
    fn global_names_mean_the_archived_ones() {
        for (script, expected) in [
            ("location.href", "LOC.href"),
            ("location = '/x'", "LOC = '/x'"),
            ("window.location.reload()", "window.LOC.reload()"),
            ("document.location.search", "document.LOC.search"),
            ("self['location']", "self['LOC']"),
            ("globalThis?.location", "globalThis?.LOC"),
            ("typeof location", "typeof LOC"),
            ("x = {location}", "x = {location:LOC}"),
            ("x = {location: location}", "x = {location: LOC}"),
            ("const {location, top: t} = window", "const {LOC:location, TOP: t} = window"),
            ("({location} = x)", "({location:LOC} = x)"),
            ("if (top !== self) top.x()", "if (TOP !== self) TOP.x()"),
            ("window.top.y", "window.TOP.y"),
            ("function f(a) { return location }", "function f(a) { return LOC }"),
            ("(a => location)()", "(a => LOC)()"),
            ("`${location}`", "`${LOC}`"),
            ("function f(location) { location } location", "function f(location) { location } LOC"),
            ("{ let top = 1; top } top", "{ let top = 1; top } TOP"),
            (
                "try {} catch (location) { location } location",
                "try {} catch (location) { location } LOC",
            ),
            (
                "(function (window) { window.location })(window)",
                "(function (window) { window.location })(window)",
            ),
            ("class A { m() { return location } }", "class A { m() { return LOC } }"),
        ] {
            assert_eq!(rewritten(script), expected, "{script}");
        }
    }

    #[test]
    fn everything_else_in_a_script_stays() {
        for script in [
            "import './a.js'; import 'lit'",
            "// import '/a.js' location",
            "/* import '/a.js' top */",
            "x = \"import '/a.js' location\"",
            "x = `import '/a.js' top`",
            "x.from('/a'); x.location; x.top = 1",
            "fetch('/import')",
            "x = /import '\\/a.js' location/",
            "import.meta.url + '/x'",
            "x = {location: 1, top() {}}",
            "var location = 1; location",
            "function f() { if (a) { var top = 1 } return top }",
            "function top() {} top()",
            "import location from './x.js'; location",
            "class top {} new top",
            "with (x) { location }",
            "location: for (;;) break location",
            "this does not parse location",
            "const {location: a} = b",
            "document.top",
        ] {
            assert_eq!(rewritten(script), script);
        }
    }

    #[test]
    fn old_encodings_keep_their_bytes() {
        let script = b"a = '\x95\\'; b = location // \x93\xfa";
        let new = rewrite(script, &links()).unwrap();
        assert_eq!(new, b"a = '\x95\\'; b = __nenrin_location // \x93\xfa");
    }

    #[test]
    fn a_deep_script_stays_whole() {
        for unit in ["(", "[", "!", "a=>", "{", "if(a)", "`${"] {
            let script = format!("location;{}", unit.repeat(100_000));
            assert_eq!(rewrite(script.as_bytes(), &links()), None, "{unit}");
        }
        let deep = format!("location;{}1{}", "(".repeat(700), ")".repeat(700));
        assert!(rewrite(deep.as_bytes(), &links()).is_some());
    }

    proptest! {
        #[test]
        fn any_script_is_read_without_harm(script in "(import|from|location|top|'|\"|`|\\$|\\{|\\}|/|\\\\|\\(|\\[|a|;|=|\n| )*") {
            let _ = rewrite(script.as_bytes(), &links());
        }
    }
}
