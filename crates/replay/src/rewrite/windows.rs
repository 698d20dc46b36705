//! Which names of a script stand for a window or a document: the global ones, and variables and parameters
//! that got one. Only what the script itself shows is followed.
#![expect(clippy::disallowed_types, reason = "names are only looked up, never gone through")]

use std::collections::HashMap;

use oxc_ast::ast::{
    Argument, BindingPattern, CallExpression, Expression, FormalParameters, StaticMemberExpression,
};

/// Global names of the window or worker that a script runs in, or of its document.
const HERE: [&str; 6] = ["window", "self", "globalThis", "frames", "document", THIS];
/// Names of other windows, global or as properties of a window.
const OTHERS: [&str; 3] = ["top", "parent", "opener"];
/// Properties that nothing but elements, documents and windows has, and that lead to a window or document.
const CERTAIN: [&str; 5] =
    ["contentWindow", "contentDocument", "defaultView", "ownerDocument", "parentWindow"];
/// `this` is looked up like a name.
pub(super) const THIS: &str = "this";
/// The place of `this` among the parameters of a function.
const AS_THIS: usize = usize::MAX;
/// How many names are followed, one after the other.
const MAX_STEPS: u8 = 8;

/// How a thing is known to be a window or document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// It is the one that the script runs in.
    Here,
    /// It may be another one, or something else in some cases.
    Elsewhere,
}

/// An expression such as `window.parent`: a name, and properties of windows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chain<'a> {
    root: &'a str,
    leaves: bool,
    is_certain: bool,
    /// Whether it ends with a document.
    pub(super) is_document: bool,
}

impl<'a> Chain<'a> {
    pub(super) fn of(expression: &Expression<'a>) -> Option<Self> {
        let root = |root: &'a str| {
            let is_document = root == "document";
            Self { root, leaves: false, is_certain: false, is_document }
        };
        match expression.get_inner_expression() {
            Expression::Identifier(name) => Some(root(name.name.as_str())),
            Expression::ThisExpression(_) => Some(root(THIS)),
            Expression::StaticMemberExpression(member) if !member.optional => {
                Self::of_member(member)
            }
            _ => None,
        }
    }

    fn of_member(member: &StaticMemberExpression<'a>) -> Option<Self> {
        let name = member.property.name.as_str();
        let is_document = matches!(name, "document" | "ownerDocument" | "contentDocument");
        if CERTAIN.contains(&name) {
            return Some(Self { root: "", leaves: true, is_certain: true, is_document });
        }
        let is_other = OTHERS.contains(&name);
        if !is_other && (name == THIS || !HERE.contains(&name)) {
            return None;
        }
        let before = Self::of(&member.object)?;
        Some(Self { leaves: before.leaves || is_other, is_document, ..before })
    }
}

/// What a variable or parameter got.
#[derive(Debug, Clone, Copy)]
enum Value<'a> {
    Chain(Chain<'a>),
    /// A function, by where it begins.
    Function(u32),
    /// Whatever is passed as this parameter of this function.
    Parameter(u32, usize),
}

/// A value, and the scope in which it is written.
#[derive(Debug, Clone, Copy)]
struct Given<'a> {
    scope: usize,
    value: Value<'a>,
}

struct Scope {
    parent: Option<usize>,
    is_function: bool,
}

/// The scopes of a script, what is declared in them, and what functions are called with.
#[derive(Default)]
pub(super) struct Scopes<'a> {
    scopes: Vec<Scope>,
    stack: Vec<usize>,
    declared: HashMap<(usize, &'a str), Vec<Given<'a>>>,
    passed: HashMap<(u32, usize), Vec<Given<'a>>>,
    /// Calls of functions by name: the scope, the name, the place of the argument, the argument.
    calls: Vec<(usize, &'a str, usize, Given<'a>)>,
    /// What is assigned to names, and in which scope.
    assigned: Vec<(usize, &'a str, Given<'a>)>,
}

impl<'a> Scopes<'a> {
    pub(super) fn enter(&mut self, is_function: bool) {
        let parent = self.stack.last().copied();
        self.stack.push(self.scopes.len());
        self.scopes.push(Scope { parent, is_function });
    }

    pub(super) fn leave(&mut self) {
        self.stack.pop();
    }

    pub(super) fn current(&self) -> usize {
        self.stack.last().copied().unwrap_or(0)
    }

    /// Declares a name here, or with `var` in the function around.
    pub(super) fn declare(&mut self, name: &'a str, is_var: bool) {
        self.declaration(name, is_var);
    }

    fn declaration(&mut self, name: &'a str, is_var: bool) -> &mut Vec<Given<'a>> {
        let mut at = self.current();
        while is_var
            && let Some(scope) = self.scopes.get(at)
            && !scope.is_function
            && let Some(parent) = scope.parent
        {
            at = parent;
        }
        self.declared.entry((at, name)).or_default()
    }

    /// Notes what a variable gets where it is declared.
    pub(super) fn give(&mut self, name: &'a str, is_var: bool, value: &Expression<'a>) {
        let scope = self.current();
        let values = values(value).map(|value| Given { scope, value });
        let declaration = self.declaration(name, is_var);
        declaration.extend(values);
    }

    /// Notes what a variable gets later.
    pub(super) fn assign(&mut self, name: &'a str, value: &Expression<'a>) {
        let scope = self.current();
        let assigned = values(value).map(|value| (scope, name, Given { scope, value }));
        self.assigned.extend(assigned);
    }

    /// Notes that a name is one of a function.
    pub(super) fn name_function(&mut self, name: &'a str, begins: u32) {
        let given = Given { scope: self.current(), value: Value::Function(begins) };
        self.declaration(name, true).push(given);
    }

    /// Declares the parameters of the function whose scope was entered.
    pub(super) fn parameters(&mut self, begins: u32, parameters: &FormalParameters<'a>) {
        for (place, parameter) in parameters.items.iter().enumerate() {
            if let BindingPattern::BindingIdentifier(name) = &parameter.pattern {
                self.parameter(name.name.as_str(), begins, place);
            }
        }
    }

    /// Declares `this` of the function whose scope was entered.
    pub(super) fn own_this(&mut self, begins: u32) {
        self.parameter(THIS, begins, AS_THIS);
    }

    fn parameter(&mut self, name: &'a str, begins: u32, place: usize) {
        let given = Given { scope: self.current(), value: Value::Parameter(begins, place) };
        self.declaration(name, false).push(given);
    }

    /// Notes what a function is called with, if the function is written here or has a name.
    pub(super) fn call(&mut self, call: &CallExpression<'a>) {
        match call.callee.get_inner_expression() {
            Expression::StaticMemberExpression(member) => {
                let Some(Value::Function(begins)) = value(&member.object) else { return };
                match member.property.name.as_str() {
                    "call" => self.pass(begins, &call.arguments, AS_THIS),
                    "apply" => {
                        self.pass(begins, &call.arguments[..call.arguments.len().min(1)], AS_THIS)
                    }
                    _ => {}
                }
            }
            Expression::Identifier(name) => {
                let scope = self.current();
                for (place, argument) in call.arguments.iter().enumerate() {
                    let Some(argument) = argument.as_expression() else { return };
                    let given = values(argument)
                        .map(|value| (scope, name.name.as_str(), place, Given { scope, value }));
                    self.calls.extend(given);
                }
            }
            callee => {
                if let Some(Value::Function(begins)) = value(callee) {
                    self.pass(begins, &call.arguments, 0);
                }
            }
        }
    }

    fn pass(&mut self, begins: u32, arguments: &[Argument<'a>], first: usize) {
        let scope = self.current();
        for (place, argument) in arguments.iter().enumerate() {
            let Some(argument) = argument.as_expression() else { return };
            let given = values(argument).map(|value| Given { scope, value });
            self.passed.entry((begins, place.wrapping_add(first))).or_default().extend(given);
        }
    }

    /// Follows names, now that all declarations are known: those that are assigned, and those that are called.
    pub(super) fn follow(&mut self) {
        for (scope, name, given) in std::mem::take(&mut self.assigned) {
            if let Some(at) = self.declared_at(scope, name)
                && let Some(known) = self.declared.get_mut(&(at, name))
            {
                known.push(given);
            }
        }
        for (scope, name, place, given) in std::mem::take(&mut self.calls) {
            let mut functions = Vec::new();
            self.functions(scope, name, MAX_STEPS, &mut functions);
            for begins in functions {
                self.passed.entry((begins, place)).or_default().push(given);
            }
        }
    }

    fn functions(&self, scope: usize, name: &'a str, steps: u8, found: &mut Vec<u32>) {
        let Some(next) = steps.checked_sub(1) else { return };
        for given in self.declared_as(scope, name).into_iter().flatten() {
            self.functions_of(given, next, found);
        }
    }

    fn functions_of(&self, given: &Given<'a>, steps: u8, found: &mut Vec<u32>) {
        let Some(next) = steps.checked_sub(1) else { return };
        match given.value {
            Value::Function(begins) => found.push(begins),
            Value::Parameter(begins, place) => {
                for given in self.passed.get(&(begins, place)).into_iter().flatten() {
                    self.functions_of(given, next, found);
                }
            }
            Value::Chain(_) => {}
        }
    }

    /// The scope that declares a name; none if it is a global one.
    fn declared_at(&self, scope: usize, name: &'a str) -> Option<usize> {
        let mut at = Some(scope);
        while let Some(number) = at {
            if self.declared.contains_key(&(number, name)) {
                return Some(number);
            }
            at = self.scopes.get(number).and_then(|scope| scope.parent);
        }
        None
    }

    /// What the name got where it is declared; none if it is a global one.
    fn declared_as(&self, scope: usize, name: &'a str) -> Option<&Vec<Given<'a>>> {
        self.declared.get(&(self.declared_at(scope, name)?, name))
    }

    /// Whether a name is not declared by the script.
    pub(super) fn is_global(&self, scope: usize, name: &'a str) -> bool {
        self.declared_as(scope, name).is_none()
    }

    /// Whether an expression is shown to be a window or document.
    pub(super) fn shown(&self, scope: usize, chain: &Chain<'a>) -> Option<Shown> {
        self.shown_within(scope, chain, MAX_STEPS)
    }

    fn shown_within(&self, scope: usize, chain: &Chain<'a>, steps: u8) -> Option<Shown> {
        if chain.is_certain {
            return Some(Shown::Elsewhere);
        }
        match self.declared_as(scope, chain.root) {
            None if OTHERS.contains(&chain.root) => Some(Shown::Elsewhere),
            None if !HERE.contains(&chain.root) => None,
            None => Some(if chain.leaves { Shown::Elsewhere } else { Shown::Here }),
            Some(given) => {
                let steps = steps.checked_sub(1)?;
                let is_shown = |given: &Given<'a>| self.is_window(given, steps);
                given.iter().any(is_shown).then_some(Shown::Elsewhere)
            }
        }
    }

    fn is_window(&self, given: &Given<'a>, steps: u8) -> bool {
        let Some(next) = steps.checked_sub(1) else { return false };
        match &given.value {
            Value::Chain(chain) => self.shown_within(given.scope, chain, next).is_some(),
            Value::Function(_) => false,
            Value::Parameter(begins, place) => {
                let passed = self.passed.get(&(*begins, *place));
                passed.into_iter().flatten().any(|given| self.is_window(given, next))
            }
        }
    }
}

/// What an expression may be: `typeof window === "undefined" ? this : window` is one of two.
fn values<'a>(expression: &Expression<'a>) -> impl Iterator<Item = Value<'a>> {
    let (one, other) = match expression.get_inner_expression() {
        Expression::ConditionalExpression(either) => {
            (value(&either.consequent), value(&either.alternate))
        }
        Expression::LogicalExpression(either) => (value(&either.left), value(&either.right)),
        other => (value(other), None),
    };
    one.into_iter().chain(other)
}

fn value<'a>(expression: &Expression<'a>) -> Option<Value<'a>> {
    match expression.get_inner_expression() {
        Expression::FunctionExpression(function) => Some(Value::Function(function.span.start)),
        Expression::ArrowFunctionExpression(function) => Some(Value::Function(function.span.start)),
        other => Chain::of(other).map(Value::Chain),
    }
}
