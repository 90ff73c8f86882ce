//! Functions, events and hooks.

use super::scope::{Scope, ScopeKind};
use super::{Parsed, Parser};
use crate::ast::{Body, Function, LocalKind, Stmt, StmtKind};
use crate::diagnostics::Severity;
use crate::ids::{Arena, BodyId, FuncId, GlobalId, StmtId, TypeId};
use crate::lexer::{Op, Word};
use crate::report::Object;
use crate::source::Span;
use crate::symbols::{GlobalKind, Symbol};
use crate::types::{Attr, AttrKind, Attrs, Flavor, FuncType, Prototype, find_attr};

impl Parser<'_> {
    /// Parses a function, event handler or hook, optionally after `redef`.
    pub(super) fn handler(&mut self, word: Word, redef: bool) -> Parsed<()> {
        self.advance()?;
        self.handler_after(word, redef)
    }

    fn handler_after(&mut self, word: Word, redef: bool) -> Parsed<()> {
        let name = self.identifier()?;
        let start = self.previous;
        self.set_node_span(start);
        if self.exporting && name.starts_with("::") {
            self.error_here(&format!("cannot use :: prefix in export section: {name}"));
        }
        let flavor = match word {
            Word::Event => Flavor::Event,
            Word::Hook => Flavor::Hook,
            _ => Flavor::Function,
        };
        let global = self.handler_global(&name, flavor);
        if flavor != Flavor::Function {
            self.warn_deprecated(global);
        }
        let ty = self.signature(flavor)?;
        if flavor == Flavor::Hook && self.accept(Op::Colon)? {
            // The grammar allows a result type, which has no effect.
            self.type_()?;
        }
        let attrs = self.attributes()?;
        let scope = self.begin_function(global, flavor, ty, &attrs, redef);
        let body = scope.body;
        if flavor != Flavor::Function {
            self.set_node_span(start);
        }
        if let Some(attr) = find_attr(&attrs, AttrKind::Deprecated)
            && find_attr(&self.program.globals[global].attrs, AttrKind::Deprecated).is_none()
        {
            let attr = attr.clone();
            self.program.globals[global].attrs.push(attr);
        }
        if std::mem::take(&mut self.invalid_definition) {
            // Zeek reports this at the opening brace.
            self.peek()?;
            let text = format!("invalid definition of '{name}' (see previous errors)");
            return Err(self.fatal_here(&text));
        }
        self.scopes.push(scope);
        let stmt = self.function_body();
        let scope = self.scopes.pop();
        let stmt = stmt?;
        self.program.bodies[body].stmt = stmt;
        let end = self.previous;
        self.program.bodies[body].span = start.to(end);
        self.references.insert(body, scope.map_or(Vec::new(), |scope| scope.globals));
        self.end_function(global, flavor, ty, body, attrs, redef)
    }

    /// Parses the `{ … }` of a function.
    pub(super) fn function_body(&mut self) -> Parsed<StmtId> {
        self.expect(Op::BraceLeft)?;
        let start = self.previous;
        let outer = (std::mem::take(&mut self.in_initializer), std::mem::take(&mut self.hook_call));
        let when = std::mem::take(&mut self.in_when_condition);
        let stmts = self.statements();
        (self.in_initializer, self.hook_call) = outer;
        self.in_when_condition = when;
        let stmts = stmts?;
        self.expect(Op::BraceRight)?;
        let span = start.to(self.previous);
        Ok(self.program.stmts.push(Stmt { kind: StmtKind::List(stmts), span }))
    }

    fn handler_global(&mut self, name: &str, flavor: Flavor) -> GlobalId {
        if flavor != Flavor::Event {
            return self.declared_global(name);
        }
        match self.lookup_in(name, false, true) {
            Some(Symbol::Global(global)) => global,
            _ => {
                let module = self.global_module;
                let global = self.add_global(name, module, GlobalKind::Unknown);
                self.undeclared_events.insert(global);
                global
            }
        }
    }

    /// Creates the scope of a body with its parameters.
    fn begin_function(
        &mut self,
        global: GlobalId,
        flavor: Flavor,
        ty: TypeId,
        attrs: &[Attr],
        redef: bool,
    ) -> Scope {
        let known = self.program.globals[global].clone();
        let new_params = self.program.types.params(ty).to_vec();
        let params_id = self.program.types.func(ty).map_or(TypeId::ERROR, |func| func.params);
        let mut offsets = (0..new_params.len()).collect::<Vec<_>>();
        let declared = self.program.types.func(known.ty).cloned();
        let object = Object::Type(ty);
        let yields = flavor == Flavor::Event && self.event_result;
        if yields {
            let message = "event cannot yield a value";
            self.report_pinpoint(message, &Object::Global(global), Some(&object));
        }
        if yields || (declared.is_none() && known.ty != TypeId::VOID) {
            let message = "Function clash with previous definition with incompatible type";
            self.report_pinpoint(message, &Object::Global(global), Some(&object));
            self.invalid_definition = true;
        } else if let Some(declared) = &declared {
            self.check_defaults_unused(flavor, &new_params);
            if declared.flavor != flavor {
                let both = (&Object::Type(ty), &Object::Type(known.ty));
                self.error_about_both("incompatible function flavor", both.0, both.1);
                if !self.program.same_parameters(declared.params, params_id) {
                    let message = "use of undeclared alternate prototype";
                    self.error_about_both(message, &object, &Object::Global(global));
                }
                let message = "inconsistent function flavor";
                self.report_pinpoint(message, &Object::Global(global), Some(&object));
                self.invalid_definition = true;
            } else if let Some(found) = self.match_prototype(declared, ty) {
                if flavor == Flavor::Function {
                    self.take_defaults(declared.params, &new_params);
                }
                offsets.clone_from(&found.offsets);
                self.warn_prototype(global, ty, declared, &found);
            } else if flavor == Flavor::Function {
                if !self.program.same_parameters(declared.params, params_id)
                    || !self.program.same_type(
                        declared.result,
                        self.program.types.func(ty).map_or(TypeId::ERROR, |func| func.result),
                    )
                {
                    self.error_about_both(
                        "incompatible function types",
                        &Object::Type(ty),
                        &Object::Type(known.ty),
                    );
                    if !self.program.same_parameters(declared.params, params_id) {
                        let message = "use of undeclared alternate prototype";
                        self.error_about_both(message, &Object::Type(ty), &Object::Global(global));
                    }
                }
            } else {
                self.error_about_both(
                    "use of undeclared alternate prototype",
                    &Object::Type(ty),
                    &Object::Global(global),
                );
            }
        } else if known.ty != TypeId::VOID || !matches!(known.kind, GlobalKind::Unknown) {
            let object = Object::Type(ty);
            self.report_pinpoint("already defined", &Object::Global(global), Some(&object));
        } else if redef {
            let message = "redef of not-previously-declared value";
            self.report_pinpoint(message, &Object::Global(global), None);
            self.invalid_definition = true;
        }
        if let Some(declared) = &declared
            && flavor == declared.flavor
            && matches!(known.kind, GlobalKind::Function(func) if self.program.functions[func].bodies.is_empty())
            && self.program.same_parameters(declared.params, params_id)
        {
            // From here on, messages show the location of the first definition.
            self.program.types.move_to(known.ty, ty);
            self.program.types.move_to(declared.params, params_id);
        }
        if declared.is_none() {
            let entry = &mut self.program.globals[global];
            if entry.ty == TypeId::VOID {
                entry.ty = ty;
            }
        } else if flavor == Flavor::Function
            && let GlobalKind::Function(func) = known.kind
            && !self.program.functions[func].bodies.is_empty()
            && find_attr(&known.attrs, AttrKind::Redef).is_none()
            && !redef
        {
            let object = Object::Type(ty);
            self.report_pinpoint("already defined", &Object::Global(global), Some(&object));
            self.invalid_definition = true;
        }
        let _ = attrs;
        let known = self.program.globals[global].clone();
        if known.kind == GlobalKind::Unknown && self.program.types.func(known.ty).is_some() {
            let function = Function {
                name: known.name,
                global: Some(global),
                ty: known.ty,
                flavor,
                bodies: Vec::new(),
            };
            let func = self.program.functions.push(function);
            self.program.globals[global].kind = GlobalKind::Function(func);
        }
        let body = self.new_body(None);
        let mut scope = Scope::new(ScopeKind::Function, body);
        scope.flavor = Some(flavor);
        scope.result = self.program.types.func(ty).map_or(TypeId::VOID, |func| func.result);
        let params = new_params
            .iter()
            .zip(&offsets)
            .map(|(param, offset)| (param.name, param.ty, *offset))
            .collect::<Vec<_>>();
        self.add_params(&mut scope, &params);
        scope
    }

    /// Adds the parameters of a body: names, types, and indices of their arguments.
    pub(super) fn add_params(
        &mut self,
        scope: &mut Scope,
        params: &[(crate::ids::Name, TypeId, usize)],
    ) {
        for (name, ty, offset) in params {
            let text = self.program.name(*name).to_owned();
            let module = self.module;
            let full = self.full_name(module, &text);
            let span = self.node_span;
            if let Some(known) = self.known_local(scope, full) {
                let shown = self.program.name(full).to_owned();
                self.error_about(
                    "argument name used twice",
                    &Object::Text(shown.as_bytes(), known),
                );
            }
            let local = crate::ast::Local {
                name: full,
                ty: *ty,
                kind: LocalKind::Param,
                attrs: Attrs::new(),
                span,
            };
            let slot = self.program.bodies[scope.body].locals.push(local);
            self.program.bodies[scope.body].params.push(Self::offset(*offset));
            scope.names.insert(full, slot);
        }
    }

    /// The location of a local with this name in `scope` or in enclosing functions.
    fn known_local(&self, scope: &Scope, name: crate::ids::Name) -> Option<Span> {
        let mut around = self.scopes.iter().rev();
        let open = match scope.kind {
            ScopeKind::Lambda => around
                .position(|outer| matches!(outer.kind, ScopeKind::Main | ScopeKind::Function))
                .map_or(0, |depth| depth + 1),
            _ => 0,
        };
        std::iter::once(scope).chain(self.scopes.iter().rev().take(open)).find_map(|scope| {
            let local = scope.names.get(&name)?;
            Some(self.program.bodies[scope.body].locals[*local].span)
        })
    }

    /// An empty body.
    pub(super) fn new_body(&mut self, func: Option<FuncId>) -> BodyId {
        self.program.bodies.push(Body {
            func,
            locals: Arena::new(),
            params: Vec::new(),
            inits: Vec::new(),
            stmt: self.null,
            priority: 0,
            groups: Vec::new(),
            module: self.module,
            span: Span::NOWHERE,
            attrs: Attrs::new(),
        })
    }

    /// Replaces the defaults of a function's declaration by those of its definition.
    fn take_defaults(&mut self, declared: TypeId, params: &[crate::types::Field]) {
        if let crate::types::Type::Record(record) = self.program.types.get_mut(declared) {
            for (known, new) in record.fields.iter_mut().zip(params) {
                if find_attr(&new.attrs, AttrKind::Default).is_some() {
                    known.attrs.clone_from(&new.attrs);
                }
            }
        }
    }

    fn check_defaults_unused(&mut self, flavor: Flavor, params: &[crate::types::Field]) {
        let what = match flavor {
            Flavor::Function => return,
            Flavor::Event => "event",
            Flavor::Hook => "hook",
        };
        let span = self.node_span;
        for param in params {
            if find_attr(&param.attrs, AttrKind::Default).is_some() {
                let message = format!(
                    "&default on parameter '{}' has no effect",
                    self.program.name(param.name)
                );
                let text = format!("not a {what} declaration");
                self.program.report_about(
                    Severity::Warning,
                    &message,
                    &Object::Text(text.as_bytes(), span),
                    None,
                );
            }
        }
    }

    /// The prototype that a body of type `ty` implements.
    fn match_prototype(&self, declared: &FuncType, ty: TypeId) -> Option<Prototype> {
        let new = self.program.types.func(ty)?;
        if new.flavor == Flavor::Function {
            let same = self.program.same_parameters(declared.params, new.params)
                && self.program.same_type(declared.result, new.result);
            let count = self.program.types.params(ty).len();
            return same.then(|| Prototype {
                params: declared.params,
                offsets: (0..count).collect(),
                deprecated: None,
                span: Span::NOWHERE,
            });
        }
        let fields = |id| self.program.types.record(id).map_or(&[][..], |record| &record.fields);
        let given = fields(new.params);
        let by_name = declared.prototypes.iter().find(|prototype| {
            let known = fields(prototype.params);
            known.len() == given.len()
                && known
                    .iter()
                    .zip(given)
                    .all(|(a, b)| a.name == b.name && self.program.same_type(a.ty, b.ty))
        });
        by_name
            .or_else(|| {
                declared
                    .prototypes
                    .iter()
                    .take(1)
                    .find(|prototype| self.program.same_parameters(prototype.params, new.params))
            })
            .cloned()
    }

    fn warn_prototype(
        &mut self,
        global: GlobalId,
        ty: TypeId,
        declared: &FuncType,
        found: &Prototype,
    ) {
        let name = self.program.name(self.program.globals[global].name).to_owned();
        if let Some(text) = &found.deprecated
            && self.ignore_deprecations == 0
        {
            let message = if text.is_empty() {
                format!("use of deprecated '{name}' prototype")
            } else {
                format!("use of deprecated '{name}' prototype: {text}")
            };
            let span = found.span;
            self.program.report_objects(
                Severity::Warning,
                &message,
                &Object::Type(ty),
                Some(&Object::Text(b"", span)),
                true,
            );
        }
        if found.deprecated.is_some() {
            return;
        }
        let params = self
            .program
            .types
            .record(declared.params)
            .map_or(Vec::new(), |record| record.fields.clone());
        for offset in &found.offsets {
            let Some(param) = params.get(*offset) else { continue };
            if let Some(text) = self.deprecated_text(&param.attrs)
                && self.ignore_deprecations == 0
            {
                let param = self.program.name(param.name).to_owned();
                let message = if text.is_empty() {
                    format!("use of deprecated parameter '{param}'")
                } else {
                    format!("use of deprecated parameter '{param}': {text}")
                };
                let other = Object::Type(declared.params);
                self.program.report_objects(
                    Severity::Warning,
                    &message,
                    &Object::Type(ty),
                    Some(&other),
                    true,
                );
            }
        }
    }

    fn end_function(
        &mut self,
        global: GlobalId,
        flavor: Flavor,
        ty: TypeId,
        body: BodyId,
        attrs: Attrs,
        redef: bool,
    ) -> Parsed<()> {
        let known = self.program.globals[global].clone();
        let priority = self.priority(&attrs)?;
        let groups = self.groups(&attrs)?;
        let func = match known.kind {
            GlobalKind::Function(func) => func,
            _ => {
                let function = Function {
                    name: known.name,
                    global: Some(global),
                    ty: known.ty,
                    flavor,
                    bodies: Vec::new(),
                };
                let func = self.program.functions.push(function);
                if matches!(known.kind, GlobalKind::Unknown)
                    || self.program.types.func(known.ty).is_some()
                {
                    self.program.globals[global].kind = GlobalKind::Function(func);
                }
                func
            }
        };
        let _ = ty;
        let entry = &mut self.program.bodies[body];
        entry.func = Some(func);
        entry.priority = priority;
        entry.groups = groups;
        entry.attrs.clone_from(&attrs);
        if flavor == Flavor::Function {
            for attr in attrs {
                if matches!(attr.kind, AttrKind::Redef | AttrKind::Deprecated | AttrKind::IsUsed)
                    && find_attr(&self.program.globals[global].attrs, attr.kind).is_none()
                {
                    self.program.globals[global].attrs.push(attr);
                }
            }
        } else if let Some(attr) = find_attr(&attrs, AttrKind::IsUsed) {
            self.program.globals[global].attrs.push(attr.clone());
        } else if let Some(attr) = find_attr(&attrs, AttrKind::Deprecated)
            && known.ty == TypeId::VOID
        {
            self.program.globals[global].attrs.push(attr.clone());
        }
        self.validate(body, flavor);
        let bodies = &self.program.functions[func].bodies;
        let position = bodies
            .iter()
            .position(|other| self.program.bodies[*other].priority < priority)
            .unwrap_or(bodies.len());
        let changed = !self.program.functions[func].bodies.is_empty();
        let bodies = &mut self.program.functions[func].bodies;
        if redef || flavor == Flavor::Function {
            bodies.clear();
            bodies.push(body);
        } else {
            bodies.insert(position, body);
        }
        if changed {
            self.engine.function_changed(self.program, func);
        }
        Ok(())
    }
}
