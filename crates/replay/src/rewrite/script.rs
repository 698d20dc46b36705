//! Scripts: import specifiers, and the global names that would show the archive's address. A parser
//! finds them; every other byte stays. A script that does not parse stays whole.

use std::{borrow::Cow, thread};

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    ArrowFunctionExpression, AssignmentExpression, AssignmentTarget,
    AssignmentTargetPropertyIdentifier, BindingIdentifier, BindingPattern, CallExpression,
    CatchClause, Class, ClassBody, ComputedMemberExpression, ExportAllDeclaration,
    ExportFromDeclaration, Expression, FormalParameters, Function, IdentifierReference,
    ImportDeclaration, ImportExpression, NewExpression, ObjectProperty, PropertyKey,
    StaticMemberExpression, StringLiteral, VariableDeclaration, VariableDeclarationKind,
    VariableDeclarator, WithStatement,
};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::{ParseOptions, Parser};
use oxc_span::{GetSpan, SourceType, Span};
use oxc_syntax::scope::{ScopeFlags, ScopeId};

use super::{
    edits::Edits,
    links::Links,
    nesting,
    windows::{Chain, Scopes, Shown, THIS},
};
use crate::modifier::Modifier;

/// The longest script that is parsed; parsing takes about ten times its size.
const MAX_BYTES: usize = 16 << 20;
/// The stack for parsing: enough for the deepest script that is parsed.
const STACK_BYTES: usize = 64 << 20;

/// A text that is run as a script is rewritten where these names mean what they mean everywhere.
const EVERYWHERE: [&str; 6] = ["location", "top", "window", "document", "self", "eval"];
/// A script without any of these words stays as it is.
const WORDS: [&[u8]; 6] = [b"import", b"export", b"location", b"top", b"eval", b"postMessage"];

/// Rewrites a script; `None` if nothing changes.
pub(crate) fn rewrite(script: &[u8], links: &Links) -> Option<Vec<u8>> {
    rewrite_as(script, links, false)
}

/// Rewrites the value of an attribute such as `onclick`, which is the body of a function.
pub(crate) fn rewrite_handler(script: &[u8], links: &Links) -> Option<Vec<u8>> {
    rewrite_as(script, links, true)
}

/// How an address begins that is a script.
pub(crate) const SCHEME: &[u8] = b"javascript:";

/// Rewrites an address that is a script. With escapes, it is read only if it is a script as it is written.
pub(crate) fn rewrite_link(address: &[u8], links: &Links) -> Option<Vec<u8>> {
    let start = address.len() - address.trim_ascii_start().len() + SCHEME.len();
    let new = rewrite(address.get(start..)?, links)?;
    Some([&address[..start], &new].concat())
}

fn rewrite_as(script: &[u8], links: &Links, is_body: bool) -> Option<Vec<u8>> {
    let is_named = WORDS.iter().any(|word| memchr::memmem::find(script, word).is_some());
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
    let has_own_this = is_body || parsed.program.source_type.is_module();
    let mut names = Names { has_own_this, ..Names::default() };
    names.visit_program(&parsed.program);
    let Names { mut scopes, references, .. } = names;
    scopes.follow();
    let mut places = Vec::new();
    for reference in &references {
        reference.decide(&scopes, &mut places);
    }
    places.sort_by_key(|place: &Place| (place.span.start, place.span.end));
    Some(places)
}

/// Something that is edited if its names mean the global ones.
struct Reference<'a> {
    scope: usize,
    condition: Condition<'a>,
    edit: Edit,
}

enum Condition<'a> {
    Always,
    /// None of these is declared around it.
    Global(&'static [&'static str]),
    /// The object is the window or document of the script. If it may be another one and has a place here, it is
    /// looked at when the script runs.
    Window(Chain<'a>, Option<Span>),
}

enum Edit {
    Replace(Span, &'static str),
    /// Calls a function with what is there.
    Call(Span, &'static str),
    /// The address of a module, in quotes.
    Specifier(Span),
}

impl<'a> Reference<'a> {
    fn decide(&self, scopes: &Scopes<'a>, places: &mut Vec<Place>) {
        match &self.condition {
            Condition::Always => self.edit.apply(places),
            Condition::Global(names) => {
                if names.iter().all(|&name| scopes.is_global(self.scope, name)) {
                    self.edit.apply(places);
                }
            }
            Condition::Window(chain, object) => match (scopes.shown(self.scope, chain), object) {
                (Some(Shown::Here), _) => self.edit.apply(places),
                (Some(Shown::Elsewhere), Some(object)) => {
                    Edit::Call(*object, "__nenrin_where(").apply(places);
                }
                _ => {}
            },
        }
    }
}

impl Edit {
    fn apply(&self, places: &mut Vec<Place>) {
        match *self {
            Self::Replace(span, new) => places.push(Place { span, what: What::Text(new) }),
            Self::Specifier(span) => places.push(Place { span, what: What::Specifier }),
            Self::Call(span, function) => {
                let at = |offset| Span::new(offset, offset);
                places.push(Place { span: at(span.start), what: What::Text(function) });
                places.push(Place { span: at(span.end), what: What::Text(")") });
            }
        }
    }
}

/// A name that cannot be replaced in a window.
struct Fixed {
    name: &'static [&'static str],
    new: &'static str,
    /// The same with the name in front, for `{location}`.
    property: &'static str,
    /// The same with the name behind, for `const {location} = window`.
    taken: &'static str,
}

static FIXED: [Fixed; 3] = [
    Fixed {
        name: &["location"],
        new: "__nenrin_location",
        property: "location:__nenrin_location",
        taken: "__nenrin_location:location",
    },
    Fixed {
        name: &["top"],
        new: "__nenrin_top",
        property: "top:__nenrin_top",
        taken: "__nenrin_top:top",
    },
    Fixed {
        name: &["eval"],
        new: "__nenrin_eval",
        property: "eval:__nenrin_eval",
        taken: "__nenrin_eval:eval",
    },
];

fn fixed(name: &str) -> Option<&'static Fixed> {
    FIXED.iter().find(|fixed| fixed.name.contains(&name))
}

/// Finds names and where they are declared.
#[derive(Default)]
struct Names<'a> {
    scopes: Scopes<'a>,
    /// Whether `this` outside of functions is not the window.
    has_own_this: bool,
    /// Whether `var` declares what is being read.
    is_var: bool,
    /// Whether what is being read is called with `new`: calling something else there would change its meaning.
    is_constructed: bool,
    /// Where the function begins whose scope is entered next.
    function: u32,
    references: Vec<Reference<'a>>,
}

impl<'a> Names<'a> {
    fn refer(&mut self, condition: Condition<'a>, edit: Edit) {
        let scope = self.scopes.current();
        self.references.push(Reference { scope, condition, edit });
    }

    /// A property of an object, which is edited if the object is a window or document.
    fn property(&mut self, object: &Expression<'a>, name: &str, edit: Span) {
        let (Some(fixed), Some(chain)) = (fixed(name), Chain::of(object)) else { return };
        // A document has its location alone.
        if chain.is_document && name != "location" {
            return;
        }
        let is_looked_at = name != "eval" && !self.is_constructed;
        let object = is_looked_at.then(|| object.span());
        self.refer(Condition::Window(chain, object), Edit::Replace(edit, fixed.new));
    }

    fn specifier(&mut self, source: &StringLiteral<'_>) {
        self.refer(Condition::Always, Edit::Specifier(source.span));
    }
}

impl<'a> Visit<'a> for Names<'a> {
    fn enter_scope(&mut self, flags: ScopeFlags, _: &std::cell::Cell<Option<ScopeId>>) {
        let is_around_var =
            flags.intersects(ScopeFlags::Top | ScopeFlags::Function | ScopeFlags::ClassStaticBlock);
        self.scopes.enter(is_around_var);
        if flags.contains(ScopeFlags::Top) && self.has_own_this {
            self.scopes.declare(THIS, false);
        }
        if flags.contains(ScopeFlags::Function) && !flags.contains(ScopeFlags::Arrow) {
            self.scopes.own_this(self.function);
        }
    }

    fn leave_scope(&mut self) {
        self.scopes.leave();
    }

    fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
        self.scopes.declare(it.name.as_str(), self.is_var);
    }

    fn visit_variable_declaration(&mut self, it: &VariableDeclaration<'a>) {
        let around = std::mem::replace(&mut self.is_var, it.kind == VariableDeclarationKind::Var);
        walk::walk_variable_declaration(self, it);
        self.is_var = around;
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        match (&it.id, &it.init) {
            (BindingPattern::BindingIdentifier(name), Some(init)) => {
                self.scopes.give(name.name.as_str(), self.is_var, init);
            }
            // `const {location} = window`
            (BindingPattern::ObjectPattern(pattern), Some(init)) => {
                let Some(chain) = Chain::of(init) else {
                    return walk::walk_variable_declarator(self, it);
                };
                for property in &pattern.properties {
                    if let PropertyKey::StaticIdentifier(key) = &property.key
                        && let Some(fixed) = fixed(key.name.as_str())
                    {
                        let new = if property.shorthand { fixed.taken } else { fixed.new };
                        let edit = Edit::Replace(key.span, new);
                        self.refer(Condition::Window(chain, None), edit);
                    }
                }
            }
            _ => {}
        }
        walk::walk_variable_declarator(self, it);
    }

    fn visit_assignment_expression(&mut self, it: &AssignmentExpression<'a>) {
        if let AssignmentTarget::AssignmentTargetIdentifier(name) = &it.left {
            self.scopes.assign(name.name.as_str(), &it.right);
        }
        walk::walk_assignment_expression(self, it);
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        let around = std::mem::replace(&mut self.is_var, false);
        // Its name is known around it, unless it is part of an expression.
        if let Some(id) = it.id.as_ref().filter(|_| it.is_declaration()) {
            self.scopes.name_function(id.name.as_str(), it.span.start);
        }
        self.function = it.span.start;
        walk::walk_function(self, it, flags);
        self.is_var = around;
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        let around = std::mem::replace(&mut self.is_var, false);
        self.function = it.span.start;
        walk::walk_arrow_function_expression(self, it);
        self.is_var = around;
    }

    fn visit_formal_parameters(&mut self, it: &FormalParameters<'a>) {
        self.scopes.parameters(self.function, it);
        walk::walk_formal_parameters(self, it);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        let around = std::mem::replace(&mut self.is_var, false);
        if let Some(id) = it.id.as_ref() {
            self.scopes.declare(id.name.as_str(), false);
        }
        walk::walk_class(self, it);
        self.is_var = around;
    }

    fn visit_class_body(&mut self, it: &ClassBody<'a>) {
        self.scopes.declare(THIS, false);
        walk::walk_class_body(self, it);
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
        if let Some(fixed) = fixed(it.name.as_str()) {
            self.refer(Condition::Global(fixed.name), Edit::Replace(it.span, fixed.new));
        }
    }

    fn visit_object_property(&mut self, it: &ObjectProperty<'a>) {
        match &it.value {
            Expression::Identifier(value) if it.shorthand => {
                if let Some(fixed) = fixed(value.name.as_str()) {
                    let edit = Edit::Replace(value.span, fixed.property);
                    self.refer(Condition::Global(fixed.name), edit);
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
        if let Some(fixed) = fixed(it.binding.name.as_str()) {
            let edit = Edit::Replace(it.binding.span, fixed.property);
            self.refer(Condition::Global(fixed.name), edit);
        }
        if let Some(init) = &it.init {
            self.visit_expression(init);
        }
    }

    fn visit_static_member_expression(&mut self, it: &StaticMemberExpression<'a>) {
        self.property(&it.object, it.property.name.as_str(), it.property.span);
        // The address of a module.
        if it.property.name.as_str() == "url"
            && let Expression::ImportMeta(_) = &it.object
        {
            self.refer(Condition::Always, Edit::Call(it.span, "__nenrin_out("));
        }
        walk::walk_static_member_expression(self, it);
    }

    fn visit_computed_member_expression(&mut self, it: &ComputedMemberExpression<'a>) {
        if let Expression::StringLiteral(name) = &it.expression {
            let inside = Span::new(name.span.start + 1, name.span.end - 1);
            self.property(&it.object, name.value.as_str(), inside);
        }
        walk::walk_computed_member_expression(self, it);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        self.scopes.call(it);
        let argument = |place: usize| it.arguments.get(place).and_then(|a| a.as_expression());
        match &it.callee {
            // It runs a text with the names that are known here.
            Expression::Identifier(name) if name.name.as_str() == "eval" => {
                if let Some(text) = argument(0) {
                    let edit = Edit::Call(text.span(), "__nenrin_text(");
                    self.refer(Condition::Global(&EVERYWHERE), edit);
                }
                return self.visit_arguments(&it.arguments);
            }
            // A window of another archived server has no script of ours that this one could reach.
            Expression::StaticMemberExpression(member)
                if member.property.name.as_str() == "postMessage" =>
            {
                if let Some(target) =
                    argument(1).filter(|target| !matches!(target, Expression::ArrayExpression(_)))
                {
                    let edit = Edit::Call(target.span(), "__nenrin_target(");
                    self.refer(Condition::Always, edit);
                }
            }
            _ => {}
        }
        walk::walk_call_expression(self, it);
    }

    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        let around = std::mem::replace(&mut self.is_constructed, true);
        self.visit_expression(&it.callee);
        self.is_constructed = around;
        self.visit_arguments(&it.arguments);
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
        match &it.source {
            Expression::StringLiteral(source) => self.specifier(source),
            // What is computed is put right when it is known.
            source => {
                self.refer(Condition::Always, Edit::Call(source.span(), "__nenrin_to("));
                self.visit_expression(source);
            }
        }
        if let Some(options) = &it.options {
            self.visit_expression(options);
        }
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
        let mut new = new.replace("__nenrin_to(", "TO(").replace("__nenrin_location", "LOC");
        for name in ["top", "where", "text", "eval", "target", "out"] {
            new = new.replace(&format!("__nenrin_{name}"), &name.to_ascii_uppercase());
        }
        new
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
            ("import(a + '/m.js')", "import(TO(a + '/m.js'))"),
            ("import(location.href)", "import(TO(LOC.href))"),
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
            ("frames.location; window.self.location", "frames.LOC; window.self.LOC"),
            ("this.location; () => this.location", "this.LOC; () => this.LOC"),
            ("top.location !== self.location", "WHERE(TOP).location !== self.LOC"),
            ("parent.location = '/x'", "WHERE(parent).location = '/x'"),
            ("window.top.location.href", "WHERE(window.TOP).location.href"),
            ("f.contentWindow.location", "WHERE(f.contentWindow).location"),
            (
                "(function (w, d) { w.location; d.location; d.top })(window, document)",
                "(function (w, d) { WHERE(w).location; WHERE(d).location; WHERE(d).top })(window, document)",
            ),
            (
                "(function () { this.location }).call(this)",
                "(function () { WHERE(this).location }).call(this)",
            ),
            ("var w = window; w.location", "var w = window; WHERE(w).location"),
            ("let w; w = self; w.location", "let w; w = self; WHERE(w).location"),
            (
                "(function (g, f) { f(g) })(typeof window > 'u' ? this : window, function (a) { a.location })",
                "(function (g, f) { f(g) })(typeof window > 'u' ? this : window, function (a) { WHERE(a).location })",
            ),
            (
                "function go(w) { w.location = '/x' } go(window)",
                "function go(w) { WHERE(w).location = '/x' } go(window)",
            ),
            ("new window.location.X(); new w.top.X", "new window.LOC.X(); new w.top.X"),
            ("eval('location')", "eval(TEXT('location'))"),
            ("(0, eval)(x); window.eval(x)", "(0, EVAL)(x); window.EVAL(x)"),
            ("w.postMessage(m, 'http://f.org')", "w.postMessage(m, TARGET('http://f.org'))"),
            ("import.meta.url; export {}", "OUT(import.meta.url); export {}"),
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
            "(function (window) { window.location })({})",
            "function f(w) { return w.location } f(x)",
            "function f() { this.location } f()",
            "class A { b = this.location; c() { this.top } }",
            "var self = this.x; self.location",
            "a?.parent.location",
            "function f(location) { eval('location') }",
            "w.postMessage(m); w.postMessage(m, [p])",
            "x.eval(y)",
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
