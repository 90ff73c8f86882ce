//! Initial values of globals, locals and fields of records.

use std::rc::Rc;

use super::Vm;
use crate::ast::ExprKind;
use crate::code::Code;
use crate::code::compile::table_attrs;
use crate::evaluate::{Init, Stop};
use crate::ids::{BodyId, ExprId, GlobalId, Id as _, LocalId, TypeId};
use crate::symbols::GlobalKind;
use crate::types::{AttrKind, Attrs, Type, attr_expr, find_attr};
use crate::value::table::{TableAttrs, parts};
use crate::value::{Defaults, LazyDefault, Record, Value, Vector};

/// The initial value of a field of a new record.
#[derive(Clone, Debug)]
pub(crate) enum FieldInit {
    /// Nothing.
    Unset,
    /// A constant.
    Constant(Value),
    /// The result of the code of `&default`, as this type.
    Code(Rc<Code>, TypeId),
    /// The value of a global, as this type; the code reports the error if the global is not set.
    Global(GlobalId, Rc<Code>, TypeId),
    /// An empty table or set.
    Table(TypeId, Option<Rc<TableAttrs>>),
    /// An empty vector.
    Vector(TypeId),
    /// A record with its defaults.
    Record(TypeId),
}

/// The initial values of the fields of a record type.
#[derive(Debug)]
pub(crate) struct Template {
    inits: Vec<FieldInit>,
    /// Initial values that need no code.
    defaults: Rc<Defaults>,
    /// Fields whose initial values are created with each record.
    per_record: Vec<u32>,
    /// Number of fields up to the last of `per_record`.
    used: usize,
}

impl Vm<'_> {
    /// A record with the given fields; others have their initial values.
    ///
    /// # Errors
    /// Returns [`Stop`] if a `&default` failed.
    pub fn new_record(
        &mut self,
        ty: TypeId,
        offsets: &[u32],
        given: Vec<Value>,
    ) -> Result<Value, Stop> {
        let last = offsets.iter().max().copied().unwrap_or_default();
        self.new_record_with(ty, last, |_, fields| {
            for (offset, value) in offsets.iter().zip(given) {
                if let Some(field) = fields.get_mut(*offset as usize)
                    && value.is_set()
                {
                    Value::put(field, value);
                }
            }
            Ok(())
        })
    }

    /// A record whose fields, up to the one at `last`, `fill` may set; others have their initial values.
    ///
    /// # Errors
    /// Returns [`Stop`] if a `&default` or `fill` failed.
    pub(crate) fn new_record_with(
        &mut self,
        ty: TypeId,
        last: u32,
        fill: impl FnOnce(&mut Self, &mut [Value]) -> Result<(), Stop>,
    ) -> Result<Value, Stop> {
        let template = self.template(ty);
        let used = template.used.max(last as usize + 1).min(template.defaults.len());
        let mut fields = template.defaults.cells(used);
        fill(self, &mut fields)?;
        for index in &template.per_record {
            let index = *index as usize;
            let (Some(init), Some(field)) = (template.inits.get(index), fields.get_mut(index))
            else {
                continue;
            };
            if !field.is_set() {
                *field = self.initial_value(init)?;
            }
        }
        Ok(Value::Record(Record::with_defaults(ty, fields, &template.defaults)))
    }

    fn initial_value(&mut self, init: &FieldInit) -> Result<Value, Stop> {
        Ok(match init {
            FieldInit::Unset => Value::Unset,
            FieldInit::Constant(value) => value.clone(),
            FieldInit::Code(code, ty) => {
                let value = self.execute(code, &[], None, None)?;
                self.convert(&value, *ty)?
            }
            FieldInit::Global(global, code, ty) => match self.m.globals.get(global.index()) {
                Some(value) if value.is_set() => {
                    let value = value.clone();
                    self.convert(&value, *ty)?
                }
                _ => self.initial_value(&FieldInit::Code(Rc::clone(code), *ty))?,
            },
            FieldInit::Table(ty, attrs) => self.new_table(*ty, attrs.clone()),
            FieldInit::Vector(ty) => Value::Vector(Vector::new(*ty, Vec::new())),
            FieldInit::Record(ty) => self.new_record(*ty, &[], Vec::new())?,
        })
    }

    /// `delete r$f`: resets the field to its initial value.
    pub(crate) fn reset_field(&mut self, record: &Rc<Record>, index: usize) -> Result<(), Stop> {
        let template = self.template(record.ty());
        let value = match template.inits.get(index) {
            Some(init) => self.initial_value(init)?,
            None => Value::Unset,
        };
        record.set(index, value);
        Ok(())
    }

    fn template(&mut self, ty: TypeId) -> Rc<Template> {
        if let Some(Some(template)) = self.m.templates.get(ty.index()) {
            return Rc::clone(template);
        }
        let fields: Vec<(TypeId, Attrs)> = self
            .p
            .types
            .record(ty)
            .map(|record| {
                record.fields.iter().map(|field| (field.ty, field.attrs.clone())).collect()
            })
            .unwrap_or_default();
        let optional =
            fields.iter().map(|(_, attrs)| find_attr(attrs, AttrKind::Optional).is_some());
        crate::value::order::set_optional(ty, optional.collect());
        let inits: Vec<FieldInit> =
            fields.iter().map(|(ty, attrs)| self.field_init(*ty, attrs)).collect();
        let template = Rc::new(self.new_template(inits));
        self.m.instantiated.insert(ty);
        if self.m.templates.len() <= ty.index() {
            self.m.templates.resize(ty.index() + 1, None);
        }
        if let Some(slot) = self.m.templates.get_mut(ty.index()) {
            *slot = Some(Rc::clone(&template));
        }
        template
    }

    fn new_template(&mut self, inits: Vec<FieldInit>) -> Template {
        let mut defaults = Defaults::new(inits.len());
        let mut per_record = Vec::new();
        for (index, init) in (0..).zip(&inits) {
            let lazy = match init {
                FieldInit::Unset => continue,
                FieldInit::Constant(value) => {
                    defaults.set_initial(index as usize, value.clone());
                    continue;
                }
                // A table whose entries expire has a timer from its creation.
                FieldInit::Table(ty, attrs)
                    if attrs.as_ref().is_none_or(|attrs| attrs.expire.is_none()) =>
                {
                    Some(LazyDefault::Table(*ty, self.is_single(*ty), attrs.clone()))
                }
                FieldInit::Vector(ty) => Some(LazyDefault::Vector(*ty)),
                // A record without fields that are created with it.
                FieldInit::Record(ty) => {
                    let template = self.template(*ty);
                    let is_plain = template.per_record.is_empty();
                    is_plain.then(|| LazyDefault::Record(*ty, Rc::clone(&template.defaults)))
                }
                _ => None,
            };
            if !lazy.is_some_and(|lazy| defaults.add_lazy(index, lazy)) {
                per_record.push(index);
            }
        }
        let used = per_record.last().map_or(0, |last| *last as usize + 1);
        Template { inits, defaults: Rc::new(defaults), per_record, used }
    }

    /// The initial value for a `&default` that constructs an empty container, which needs no code.
    fn empty_default(&self, expr: ExprId, ty: TypeId) -> Option<FieldInit> {
        let inner = match self.p.exprs[expr].kind {
            ExprKind::Coerce(_, inner) => inner,
            _ => expr,
        };
        let (attrs, entries) = match &self.p.exprs[inner].kind {
            ExprKind::Set(constructor) => (&constructor.attrs, constructor.entries.len()),
            ExprKind::Table(constructor) => (&constructor.attrs, constructor.entries.len()),
            ExprKind::Vector(items) if items.is_empty() => {
                let own = self.p.exprs[inner].ty;
                let same = self.p.types.element(own) == self.p.types.element(ty);
                return Some(FieldInit::Vector(if same { own } else { ty }));
            }
            _ => return None,
        };
        let attrs = table_attrs(attrs);
        let ordered = TableAttrs { ordered: true, ..TableAttrs::default() };
        if entries > 0 || attrs.as_deref().is_some_and(|attrs| *attrs != ordered) {
            return None;
        }
        // An empty container of an unspecified type gets the type of the field.
        let specified = |ty: TypeId| self.p.types.table(ty).is_some_and(|t| !t.index.is_empty());
        let own = self.p.exprs[inner].ty;
        let ty = if specified(own) { own } else { ty };
        specified(ty).then_some(FieldInit::Table(ty, attrs))
    }

    fn field_init(&mut self, ty: TypeId, attrs: &Attrs) -> FieldInit {
        let is_table = matches!(self.p.types.get(ty), Type::Table(_));
        if let Some(expr) = attr_expr(attrs, AttrKind::Default) {
            // A `&default` on a table field that is no table is the default of the table's entries.
            let is_field_default =
                !is_table || matches!(self.p.types.get(self.p.exprs[expr].ty), Type::Table(_));
            if is_field_default {
                if let ExprKind::Literal(literal) = &self.p.exprs[expr].kind {
                    return FieldInit::Constant(Value::literal(literal, self.p.exprs[expr].ty));
                }
                if let ExprKind::Global(global) = self.p.exprs[expr].kind
                    && let GlobalKind::EnumValue(value) = self.p.globals[global].kind
                {
                    return FieldInit::Constant(Value::Enum(self.p.globals[global].ty, value));
                }
                if let Some(init) = self.empty_default(expr, ty) {
                    return init;
                }
                let code = self.expr_code(expr);
                return match &self.p.exprs[expr].kind {
                    ExprKind::Global(global) => match self.m.globals.get(global.index()) {
                        // An assignment to the global discards the templates.
                        Some(value)
                            if self.m.state.began
                                && value.is_set()
                                && !value.owns_memory()
                                && value.ty() == ty =>
                        {
                            let value = value.clone();
                            if self.p.globals[*global].kind != GlobalKind::Constant {
                                self.m.defaulted.insert(*global);
                            }
                            FieldInit::Constant(value)
                        }
                        _ => FieldInit::Global(*global, code, ty),
                    },
                    ExprKind::Record(record)
                        if record.named
                            && record.fields.is_empty()
                            && self.p.exprs[expr].ty == ty =>
                    {
                        FieldInit::Record(ty)
                    }
                    _ => FieldInit::Code(code, ty),
                };
            }
        }
        if find_attr(attrs, AttrKind::Optional).is_some() {
            return FieldInit::Unset;
        }
        match self.p.types.get(ty) {
            Type::Table(_) => FieldInit::Table(ty, table_attrs(attrs)),
            Type::Vector(_) => FieldInit::Vector(ty),
            Type::Record(_) => FieldInit::Record(ty),
            _ => FieldInit::Unset,
        }
    }

    /// The empty value of a type: containers without elements, records with their defaults; unset for others.
    ///
    /// # Errors
    /// Returns [`Stop`] if a `&default` failed.
    pub fn empty_value(
        &mut self,
        ty: TypeId,
        attrs: Option<Rc<TableAttrs>>,
    ) -> Result<Value, Stop> {
        Ok(match self.p.types.get(ty) {
            Type::Table(_) => self.new_table(ty, attrs),
            Type::Vector(_) => Value::Vector(Vector::new(ty, Vec::new())),
            Type::Record(_) => self.new_record(ty, &[], Vec::new())?,
            _ => Value::Unset,
        })
    }

    pub(crate) fn empty_local(&mut self, body: BodyId, local: LocalId) -> Result<Value, Stop> {
        let data = &self.p.bodies[body].locals[local];
        let (ty, attrs) = (data.ty, table_attrs(&data.attrs));
        self.empty_value(ty, attrs)
    }

    /// Initializes or changes a global.
    pub(crate) fn initialize_global(
        &mut self,
        global: GlobalId,
        init: Init,
        expr: Option<ExprId>,
    ) -> Result<(), Stop> {
        let data = &self.p.globals[global];
        let ty = data.ty;
        let attrs = table_attrs(&data.attrs);
        match (init, expr) {
            (Init::Empty, _) | (_, None) => {
                let value = self.empty_value(ty, attrs)?;
                self.set_global(global, value);
            }
            (Init::Full, Some(expr)) => {
                let code = Rc::new(crate::code::compile::compile_expr(self.p, expr));
                let value = self.execute(&code, &[], None, None)?;
                if let Value::Table(table) = &value {
                    let inner = match self.p.exprs[expr].kind {
                        ExprKind::Coerce(_, inner) => inner,
                        _ => expr,
                    };
                    let fresh = matches!(
                        self.p.exprs[inner].kind,
                        ExprKind::Table(_) | ExprKind::Set(_) | ExprKind::List(_)
                    );
                    if attrs.is_some() && fresh {
                        let merged = merge(table.attrs(), attrs);
                        table.set_attrs(merged);
                        self.watch_expiry(table);
                    }
                }
                if let Value::File(file) = &value
                    && find_attr(&self.p.globals[global].attrs, AttrKind::RawOutput).is_some()
                {
                    file.raw.set(true);
                }
                self.set_global(global, value);
            }
            (Init::Extra | Init::Remove, Some(expr)) => {
                let code = Rc::new(crate::code::compile::compile_expr(self.p, expr));
                let value = self.execute(&code, &[], None, None)?;
                self.extend_global(global, init, expr, &value)?;
            }
        }
        Ok(())
    }

    fn extend_global(
        &mut self,
        global: GlobalId,
        init: Init,
        site: ExprId,
        value: &Value,
    ) -> Result<(), Stop> {
        let attr = if init == Init::Extra { AttrKind::AddFunc } else { AttrKind::DeleteFunc };
        let old = self.global(global);
        if let Some(expr) = attr_expr(&self.p.globals[global].attrs, attr)
            && let Value::Func(func) = self.eval(expr)?
        {
            let new = self.call(&func, &[old, value.clone()])?;
            self.set_global(global, new);
            return Ok(());
        }
        if !old.is_set() {
            if init == Init::Extra {
                self.set_global(global, value.clone());
            }
            return Ok(());
        }
        match (init, &old, value) {
            (Init::Extra, Value::Table(table), Value::Table(other)) => {
                for (key, value) in other.entries() {
                    self.insert(table, parts(&key), value)?;
                }
            }
            (Init::Remove, Value::Table(table), Value::Table(other)) => {
                for key in other.keys() {
                    self.remove(table, parts(&key))?;
                }
            }
            (Init::Extra, Value::Vector(vector), Value::Vector(other)) => {
                let more = other.items().clone();
                vector.items_mut().extend(more);
            }
            (Init::Extra, Value::Vector(vector), one) => vector.items_mut().push(one.clone()),
            (Init::Extra, _, _) => {
                let new = self.add_to(site, &old, value)?;
                self.set_global(global, new);
            }
            (_, _, _) => {
                let new = self.binary(site, crate::ast::BinaryOp::Subtract, &old, value)?;
                self.set_global(global, new);
            }
        }
        Ok(())
    }

    /// Adds the new fields of an extended record type to existing values.
    pub(crate) fn extend_records(&mut self, ty: TypeId, _: usize) {
        self.m.templates.clear();
        self.m.conversions.clear();
        // No value of the type has been created.
        if !self.m.instantiated.contains(&ty) {
            return;
        }
        let mut seen = std::collections::HashSet::new();
        let mut found = Vec::new();
        let mut tables = Vec::new();
        let mut holders = RecordHolders { record: ty, known: std::collections::HashMap::new() };
        let mut work: Vec<Value> = self.m.globals.clone();
        let used = self.m.stack.iter().take(self.stack_top());
        work.extend(used.filter(|value| value.is_set()).cloned());
        while let Some(value) = work.pop() {
            let Some(address) = value.address() else { continue };
            if !holders.may_hold(self.p, value.ty()) || !seen.insert(address) {
                continue;
            }
            match &value {
                Value::Record(record) => {
                    work.extend(record.fields().iter().cloned());
                    if record.ty() == ty {
                        found.push(Rc::clone(record));
                    }
                }
                Value::Vector(vector) => work.extend(vector.items().iter().cloned()),
                Value::List(list) => work.extend(list.items.iter().cloned()),
                Value::Table(table) => {
                    let index = self.p.types.table(table.ty()).map(|table| table.index.clone());
                    let is_key_searched = index.is_none_or(|index| {
                        index.iter().any(|part| holders.may_hold(self.p, *part))
                    });
                    if is_key_searched {
                        tables.push(Rc::clone(table));
                    }
                    for (key, value) in table.entries() {
                        if is_key_searched {
                            work.push(key);
                        }
                        work.push(value);
                    }
                }
                Value::Func(func) => work.extend(func.captures.borrow().iter().cloned()),
                _ => (),
            }
        }
        if found.is_empty() {
            return;
        }
        let rebuilt: Vec<_> =
            tables.iter().map(|table| (Rc::clone(table), table.entries_with_times())).collect();
        let template = self.template(ty);
        // The search visited the globals from last to first.
        for record in found.into_iter().rev() {
            let have = record.fields().len();
            for init in template.inits.iter().skip(have) {
                if let Ok(value) = self.initial_value(init) {
                    record.fields_mut().push(value);
                }
            }
        }
        for (table, entries) in rebuilt {
            table.clear();
            for (key, value, time) in entries {
                table.insert(key, value, time);
            }
        }
    }
}

fn merge(own: Option<Rc<TableAttrs>>, declared: Option<Rc<TableAttrs>>) -> Option<Rc<TableAttrs>> {
    match (own, declared) {
        (Some(own), Some(declared)) => Some(Rc::new(TableAttrs {
            default: declared.default.or(own.default),
            default_insert: declared.default_insert.or(own.default_insert),
            expire: declared.expire.or(own.expire),
            expire_func: declared.expire_func.or(own.expire_func),
            on_change: declared.on_change.or(own.on_change),
            ordered: declared.ordered || own.ordered,
        })),
        (own, declared) => own.or(declared),
    }
}

/// Finds the types whose values can contain a record of one type.
struct RecordHolders {
    record: TypeId,
    known: std::collections::HashMap<TypeId, bool>,
}

impl RecordHolders {
    fn may_hold(&mut self, program: &crate::program::Program, ty: TypeId) -> bool {
        if let Some(known) = self.known.get(&ty) {
            return *known;
        }
        let holds = self.search(program, ty);
        if holds {
            // The answer for a type found while an enclosing type was being searched may be incomplete.
            self.known.retain(|_, known| *known);
        }
        holds
    }

    /// A depth-first search; `known` has the visited types.
    fn search(&mut self, program: &crate::program::Program, ty: TypeId) -> bool {
        use crate::types::Type;
        if ty == self.record {
            return true;
        }
        if let Some(known) = self.known.get(&ty) {
            return *known;
        }
        self.known.insert(ty, false);
        let holds = match program.types.get(ty) {
            Type::Any | Type::Func(_) | Type::Opaque(_) => true,
            Type::Vector(element) => *element != TypeId::VOID && self.search(program, *element),
            Type::List(list) => {
                list.types.is_empty() || list.types.iter().any(|ty| self.search(program, *ty))
            }
            Type::Table(table) => table
                .index
                .iter()
                .chain(table.value.as_ref())
                .any(|part| self.search(program, *part)),
            Type::Record(record) => {
                record.fields.iter().any(|field| self.search(program, field.ty))
            }
            _ => false,
        };
        self.known.insert(ty, holds);
        holds
    }
}
