//! Attributes: syntax, and the declarations that each may appear in.

use super::{Parsed, Parser};
use crate::ast::ExprKind;
use crate::compare::{is_arithmetic, is_integral};
use crate::diagnostics::Severity;
use crate::evaluate::Constant;
use crate::ids::{ExprId, TypeId};
use crate::lexer::{Op, Token};
use crate::literal::Literal;
use crate::report::Object;
use crate::types::{Attr, AttrKind, Attrs, Flavor, Tag, Type, find_attr};

/// The declaration that attributes belong to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AttributeTarget {
    /// A field of a record or a parameter.
    Field,
    /// A global.
    Global,
    /// A local.
    Local,
    /// A table or set constructor.
    Value,
}

impl Parser<'_> {
    /// Parses any number of attributes.
    pub(super) fn attributes(&mut self) -> Parsed<Attrs> {
        let mut attrs = Attrs::new();
        while let Token::Attr(kind) = *self.peek()? {
            self.advance()?;
            let start = self.previous;
            let needs_value = matches!(
                kind,
                AttrKind::Default
                    | AttrKind::DefaultInsert
                    | AttrKind::AddFunc
                    | AttrKind::DeleteFunc
                    | AttrKind::ExpireFunc
                    | AttrKind::ReadExpire
                    | AttrKind::WriteExpire
                    | AttrKind::CreateExpire
                    | AttrKind::Priority
                    | AttrKind::Group
                    | AttrKind::TypeColumn
                    | AttrKind::OnChange
                    | AttrKind::PublishOnChange
                    | AttrKind::BrokerStore
                    | AttrKind::Backend
            );
            let mut expr = None;
            if needs_value {
                self.expect(Op::Assign)?;
                expr = Some(self.expression()?);
            } else if kind == AttrKind::Deprecated && self.accept(Op::Assign)? {
                self.peek()?;
                let value = self.expression()?;
                if matches!(self.program.exprs[value].kind, ExprKind::Literal(Literal::String(_))) {
                    expr = Some(value);
                } else {
                    let text = crate::describe::expr(self.program, value);
                    let text = String::from_utf8_lossy(&text).into_owned();
                    self.error_here(&format!("'&deprecated={text}' must use a string literal"));
                }
            }
            let _ = start;
            let span = self.previous;
            let span = crate::source::Span {
                file: span.file,
                first: span.last,
                last: span.last,
                start: start.start,
                end: span.end,
            };
            attrs.push(Attr { kind, expr, span });
        }
        Ok(attrs)
    }

    /// Checks attributes for a declaration of type `ty`, converts their values and adds implied ones.
    pub(super) fn check_attrs(
        &mut self,
        attrs: Attrs,
        ty: TypeId,
        target: AttributeTarget,
    ) -> Attrs {
        self.add_attrs(Attrs::new(), attrs, ty, target, false)
    }

    /// Adds attributes to existing ones.
    pub(super) fn add_attrs(
        &mut self,
        known: Attrs,
        attrs: Attrs,
        ty: TypeId,
        target: AttributeTarget,
        redef: bool,
    ) -> Attrs {
        let mut all = known;
        self.attrs_span = attrs.last().map_or(self.node_span, |attr| attr.span);
        for attr in attrs {
            self.add_attr(&mut all, attr, ty, target, redef);
        }
        all
    }

    fn add_attr(
        &mut self,
        all: &mut Attrs,
        attr: Attr,
        ty: TypeId,
        target: AttributeTarget,
        redef: bool,
    ) {
        let kind = attr.kind;
        if let Some(position) = all.iter().position(|known| known.kind == kind) {
            let repeatable = matches!(
                kind,
                AttrKind::Log
                    | AttrKind::Optional
                    | AttrKind::Redef
                    | AttrKind::RawOutput
                    | AttrKind::IsAssigned
                    | AttrKind::IsUsed
                    | AttrKind::ErrorHandler
                    | AttrKind::NoZamOpt
                    | AttrKind::NoCppOpt
                    | AttrKind::Group
            );
            if repeatable && kind != AttrKind::Group {
                // For other declarations `&default` implies it, and attributes of locals are added twice.
                if (kind, target) == (AttrKind::Optional, AttributeTarget::Field)
                    && find_attr(all, AttrKind::Default).is_some()
                {
                    self.attr_error(
                        all,
                        "Using &default and &optional together results in &default behavior",
                    );
                }
                return;
            }
            if kind == AttrKind::Deprecated && attr.expr.is_none() && all[position].expr.is_none() {
                return;
            }
            if redef {
                all.remove(position);
            } else if !repeatable {
                self.error_here(&format!("Duplicate {} attribute is ambiguous", kind.name()));
                return;
            }
        }
        all.push(attr);
        let last = all.len() - 1;
        self.attr_failed = false;
        self.check_attr(all, last, ty, target);
        if self.attr_failed {
            all.truncate(last);
            return;
        }
        let has = |all: &Attrs, kind| find_attr(all, kind).is_some();
        let span = all.get(last).map_or(self.node_span, |attr| attr.span);
        if matches!(kind, AttrKind::AddFunc | AttrKind::DeleteFunc) && !has(all, AttrKind::Redef) {
            all.push(Attr { kind: AttrKind::Redef, expr: None, span });
        }
        if kind == AttrKind::Default
            && target != AttributeTarget::Global
            && !has(all, AttrKind::Optional)
        {
            all.push(Attr { kind: AttrKind::Optional, expr: None, span });
        }
    }

    /// Reports an error about attributes.
    fn attr_error(&mut self, all: &Attrs, message: &str) {
        self.attr_failed = true;
        let span = self.attrs_span;
        self.error_about(message, &Object::Attrs(all, span));
    }

    fn check_attr(
        &mut self,
        all: &mut Attrs,
        position: usize,
        ty: TypeId,
        target: AttributeTarget,
    ) {
        let attr = all[position].clone();
        let tag = self.program.types.tag(ty);
        if tag == Tag::Error || attr.expr.is_some_and(|expr| self.is_error(expr)) {
            return;
        }
        let has = |all: &Attrs, kind| find_attr(all, kind).is_some();
        let is_set = self.program.types.is_set(ty);
        match attr.kind {
            AttrKind::Optional => {
                if target != AttributeTarget::Field {
                    self.attr_error(all, "&optional is only valid for record fields");
                } else if has(all, AttrKind::Default) {
                    self.attr_error(
                        all,
                        "Using &default and &optional together results in &default behavior",
                    );
                }
            }
            AttrKind::Default => {
                if target == AttributeTarget::Global && (tag != Tag::Table || is_set) {
                    self.attr_error(
                        all,
                        "&default is not valid for global variables except for tables",
                    );
                } else if has(all, AttrKind::Optional) {
                    self.attr_error(
                        all,
                        "Using &default and &optional together results in &default behavior",
                    );
                } else if has(all, AttrKind::DefaultInsert) {
                    self.attr_error(all, "&default and &default_insert cannot be used together");
                } else {
                    self.check_default(all, position, ty, target);
                }
            }
            AttrKind::DefaultInsert => {
                if tag != Tag::Table || is_set {
                    self.attr_error(all, "&default_insert only applicable to tables");
                } else if has(all, AttrKind::Default) {
                    self.attr_error(all, "&default and &default_insert cannot be used together");
                } else {
                    self.check_default(all, position, ty, target);
                }
            }
            AttrKind::ReadExpire | AttrKind::WriteExpire | AttrKind::CreateExpire => {
                self.check_expire(all, &attr, tag);
            }
            AttrKind::ExpireFunc => self.check_expire_func(all, &attr, ty),
            AttrKind::OnChange => self.check_on_change(all, &attr, ty),
            AttrKind::AddFunc | AttrKind::DeleteFunc => self.check_change_func(&attr, ty),
            AttrKind::RawOutput if tag != Tag::File => {
                self.attr_error(all, "&raw_output only applicable to files");
            }
            AttrKind::Priority => self.attr_error(all, "&priority only applicable to event bodies"),
            AttrKind::ErrorHandler if !self.is_event(ty) => {
                self.attr_error(all, "&error_handler only applicable to events");
            }
            AttrKind::Group if !self.is_event(ty) => {
                self.attr_error(all, "&group only applicable to events");
            }
            AttrKind::PublishOnChange if target != AttributeTarget::Global || tag != Tag::Table => {
                let text = "&publish_on_change only applicable to global sets/tables";
                self.attr_error(all, text);
            }
            AttrKind::Backend => {
                let text = "Remove in v9.1: The Broker-specific &backend attribute on tables is \
                            deprecated. Use explicit remote events via Cluster::publish() or the \
                            storage framework to distribute or persist state.";
                self.deprecation(text, None);
                if target != AttributeTarget::Global || tag != Tag::Table {
                    self.attr_error(all, "&backend only applicable to global sets/tables");
                } else {
                    self.check_stored(all, ty, "&backend");
                }
            }
            AttrKind::BrokerStore if tag != Tag::Table => {
                self.attr_error(all, "&broker_store only applicable to sets/tables");
            }
            AttrKind::BrokerStore => self.check_stored(all, ty, "&broker_store"),
            AttrKind::BrokerAllowComplexType if tag != Tag::Table => {
                let text = "&broker_allow_complex_type only applicable to sets/tables";
                self.attr_error(all, text);
            }
            AttrKind::Log if !self.can_log(ty, 0) => {
                self.attr_error(all, "&log applied to a type that cannot be logged");
            }
            AttrKind::TypeColumn if tag != Tag::Port => {
                self.attr_error(all, "type_column tag only applicable to ports");
            }
            AttrKind::Ordered if tag != Tag::Table => {
                self.attr_error(all, "&ordered only applicable to tables");
            }
            _ => {}
        }
    }

    /// Checks that a table of this type can be in a store, as the attribute `name` requires.
    fn check_stored(&mut self, all: &Vec<Attr>, ty: TypeId, name: &str) {
        let has = |kind| all.iter().any(|attr| attr.kind == kind);
        let value = self.program.types.table(ty).and_then(|table| table.value);
        let is_simple = value.is_none_or(|value| {
            let tag = self.program.types.tag(value);
            tag.is_atomic() || tag == Tag::Pattern
        });
        if !is_simple && !has(AttrKind::BrokerAllowComplexType) {
            self.attr_error(all, &format!("{name} only supports atomic types as table value"));
        } else if has(AttrKind::ExpireFunc) {
            let text = format!("{name} and &expire_func cannot be used simultaneously");
            self.attr_error(all, &text);
        } else if has(AttrKind::ReadExpire) {
            let text = format!("{name} and &read_expire cannot be used simultaneously");
            self.attr_error(all, &text);
        }
    }

    fn is_event(&self, ty: TypeId) -> bool {
        self.program.types.func(ty).is_some_and(|func| func.flavor == Flavor::Event)
    }

    /// Whether the `&default` of an empty table constructor fits the table type of the context; reports an
    /// error if not.
    pub(super) fn default_fits(&mut self, expr: ExprId, ty: TypeId) -> bool {
        let ExprKind::Table(constructor) = self.program.exprs[expr].kind.clone() else {
            return true;
        };
        let value = self.program.types.table(ty).and_then(|table| table.value);
        let mut found = constructor.attrs.into_iter();
        let default =
            found.find(|attr| matches!(attr.kind, AttrKind::Default | AttrKind::DefaultInsert));
        let (Some(default), Some(value)) = (default, value) else { return true };
        let Some(given) = default.expr.filter(|given| !self.is_error(*given)) else { return true };
        let name = default.kind.name();
        let from = self.ty(given);
        if let Some(func) = self.program.types.func(from).cloned()
            && self.program.types.tag(value) != Tag::Func
        {
            let index =
                self.program.types.table(ty).map_or(Vec::new(), |table| table.index.to_vec());
            let params =
                self.program.types.params(from).iter().map(|field| field.ty).collect::<Vec<_>>();
            let fits = self.program.same_type(func.result, value)
                && self.program.same_types(&params, &index);
            if !fits {
                let text = format!("{name} function type clash");
                self.error_about_default(&text, ty, expr);
            }
            return fits;
        }
        let fits = self.program.same_type(value, from)
            || self.program.record_promotable(value, from)
            || matches!(self.program.exprs[given].kind, ExprKind::List(_))
            || self.promote(given, value).is_some();
        if !fits {
            let text = format!("{name} value has inconsistent type");
            self.error_about_default(&text, ty, expr);
        }
        fits
    }

    /// Reports that the default of a constructor does not fit a table type; the message names the type if it
    /// has a name.
    fn error_about_default(&mut self, message: &str, ty: TypeId, expr: ExprId) {
        let data = self.type_data(ty);
        let span = data.span;
        match data.name.map(|name| self.program.name(name).to_owned()) {
            Some(name) => {
                let object = Object::Text(name.as_bytes(), span);
                self.error_about_both(message, &object, &Object::Expr(expr));
            }
            None => self.error_about_both(message, &Object::Type(ty), &Object::Expr(expr)),
        }
    }

    /// Whether values of the type can be columns of a log.
    pub(super) fn can_log(&self, ty: TypeId, depth: usize) -> bool {
        match self.program.types.get(ty) {
            Type::Bool
            | Type::Int
            | Type::Count
            | Type::Double
            | Type::Time
            | Type::Interval
            | Type::String
            | Type::Port
            | Type::Addr
            | Type::Subnet
            | Type::Enum(_)
            | Type::File
            | Type::Func(_) => true,
            Type::Record(_) => depth == 0,
            Type::Table(table) => {
                depth == 0
                    && table.value.is_none()
                    && table.index.len() == 1
                    && self.can_log(table.index[0], depth + 1)
            }
            Type::Vector(element) => depth == 0 && self.can_log(*element, depth + 1),
            _ => false,
        }
    }

    fn check_default(
        &mut self,
        all: &mut Attrs,
        position: usize,
        ty: TypeId,
        target: AttributeTarget,
    ) {
        let Some(mut expr) = all[position].expr else { return };
        if ty == TypeId::UNSPECIFIED_TABLE || ty == TypeId::UNSPECIFIED_SET {
            return;
        }
        let name = all[position].kind.name();
        let table = self
            .program
            .types
            .table(ty)
            .and_then(|table| table.value.map(|value| (table.index.to_vec(), value)));
        let expected = match &table {
            Some((index, value))
                if target != AttributeTarget::Field
                    || all[position].kind == AttrKind::DefaultInsert =>
            {
                let default = self.ty(expr);
                if let Some(func) = self.program.types.func(default).cloned()
                    && self.program.types.tag(*value) != Tag::Func
                {
                    let params = self
                        .program
                        .types
                        .params(default)
                        .iter()
                        .map(|field| field.ty)
                        .collect::<Vec<_>>();
                    let result = self.program.same_type(func.result, *value)
                        || self.program.arithmetic_promotable(*value, func.result);
                    let (params, index) = (params, index.to_vec());
                    if !self.check_params(default, &params, &index) || !result {
                        self.attr_error(all, &format!("{name} function type clash"));
                    }
                    return;
                }
                *value
            }
            _ => ty,
        };
        let from = self.ty(expr);
        if let ExprKind::List(elements) = self.program.exprs[expr].kind.clone()
            && let Some(built) = self.construct(expected, elements, Attrs::new(), expr)
        {
            expr = built;
        }
        let fits = from == expected
            || self.program.same_type(expected, from)
            || self.program.fits_unspecified(expected, from)
            || (is_arithmetic(self.program.types.tag(expected))
                && is_arithmetic(self.program.types.tag(from)))
            || self.program.record_promotable(expected, from);
        let mixed = is_arithmetic(self.program.types.tag(from)) && from != TypeId::ERROR;
        // For other types, Zeek also reports why a value does not fit.
        let set_field = target == AttributeTarget::Field && self.program.types.is_set(ty);
        let explained = table.is_none() && !set_field;
        let reported = fits || mixed || explained;
        let promoted = if reported || is_arithmetic(self.program.types.tag(expected)) {
            self.promote(expr, expected)
        } else {
            None
        };
        let message = format!("{name} value has inconsistent type");
        match promoted {
            Some(promoted) => all[position].expr = Some(promoted),
            None if explained => {
                self.error_about_both(&message, &Object::Expr(expr), &Object::Type(expected));
            }
            None => self.attr_error(all, &message),
        }
    }

    fn check_expire(&mut self, all: &Attrs, attr: &Attr, tag: Tag) {
        if tag != Tag::Table {
            return self.attr_error(all, "expiration only applicable to sets/tables");
        }
        let expires = |attr: &&Attr| {
            matches!(
                attr.kind,
                AttrKind::ReadExpire | AttrKind::WriteExpire | AttrKind::CreateExpire
            )
        };
        if all.iter().filter(expires).count() > 1 {
            return self.attr_error(
                all,
                "set/table can only have one of &read_expire, &write_expire, &create_expire",
            );
        }
        if let Some(expr) = attr.expr
            && self.tag(expr) != Tag::Interval
        {
            self.error_about("expiration interval has wrong type", &Object::Expr(expr));
        }
    }

    fn check_expire_func(&mut self, all: &Attrs, attr: &Attr, ty: TypeId) {
        let Some(table) = self.program.types.table(ty).cloned() else {
            return self.attr_error(all, "expiration only applicable to tables");
        };
        // The errors refer to the attribute alone.
        let all = std::slice::from_ref(attr).to_vec();
        let all = &all;
        let func_ty = attr.expr.map_or(TypeId::ERROR, |expr| self.ty(expr));
        let Some(func) = self
            .program
            .types
            .func(func_ty)
            .filter(|func| func.flavor == Flavor::Function)
            .cloned()
        else {
            return self.attr_error(all, "&expire_func attribute is not a function");
        };
        if self.program.types.tag(func.result) != Tag::Interval {
            return self.attr_error(all, "&expire_func must yield a value of type interval");
        }
        if table.index.is_empty() {
            return;
        }
        let params =
            self.program.types.params(func_ty).iter().map(|field| field.ty).collect::<Vec<_>>();
        let any = params.len() == 2 && params[1] == TypeId::ANY;
        let mut expected = vec![ty];
        expected.extend(&table.index);
        if any {
            expected.truncate(1);
            expected.push(TypeId::ANY);
        }
        if !self.check_params(func_ty, &params, &expected) {
            self.attr_error(all, "&expire_func argument type clash");
        }
    }

    /// Whether a function has parameters of the types `expected`; warns if not.
    pub(super) fn check_params(
        &mut self,
        func: TypeId,
        params: &[TypeId],
        expected: &[TypeId],
    ) -> bool {
        if params.len() != expected.len() {
            let text = format!(
                "Wrong number of arguments for function. Expected {}, got {}.",
                expected.len(),
                params.len()
            );
            self.program.report_about(Severity::Warning, &text, &Object::Type(func), None);
            return false;
        }
        for (position, (param, expected)) in params.iter().zip(expected).enumerate() {
            if !self.program.same_type(*param, *expected) {
                let name = |ty: TypeId| crate::describe::tag_name(self.program.types.get(ty));
                let text = format!(
                    "Type mismatch in function argument #{position}. Expected {}, got {}.",
                    name(*expected),
                    name(*param)
                );
                self.program.report_about(Severity::Warning, &text, &Object::Type(func), None);
                return false;
            }
        }
        true
    }

    fn check_on_change(&mut self, all: &Attrs, attr: &Attr, ty: TypeId) {
        let Some(table) = self.program.types.table(ty).cloned() else {
            return self.attr_error(all, "&on_change only applicable to sets/tables");
        };
        // The type of `table()` is not yet known.
        if matches!(ty, TypeId::UNSPECIFIED_TABLE | TypeId::UNSPECIFIED_SET) {
            return;
        }
        let func_ty = attr.expr.map_or(TypeId::ERROR, |expr| self.ty(expr));
        let Some(func) = self
            .program
            .types
            .func(func_ty)
            .filter(|func| func.flavor == Flavor::Function)
            .cloned()
        else {
            return self.attr_error(all, "&on_change attribute is not a function");
        };
        if func.result != TypeId::VOID {
            return self.attr_error(all, "&on_change must not return a value");
        }
        let params =
            self.program.types.params(func_ty).iter().map(|field| field.ty).collect::<Vec<_>>();
        let expected = table.index.len() + 2 + usize::from(table.value.is_some());
        if params.len() != expected {
            return self.attr_error(all, "&on_change function has incorrect number of arguments");
        }
        let same = self.program.same_type(params[0], ty);
        if !same {
            return self
                .attr_error(all, "&on_change: first argument must be of same type as table");
        }
        if self.program.types.tag(params[1]) != Tag::Enum {
            return self.attr_error(all, "&on_change: second argument must be a TableChange enum");
        }
        let (index, value) = params[2..].split_at(table.index.len());
        let mut pairs = index.iter().zip(&table.index);
        if !pairs.all(|(param, expected)| self.program.same_type(*param, *expected)) {
            self.attr_error(all, "&on_change: index types do not match table");
        } else if let (Some(param), Some(expected)) = (value.first(), table.value)
            && !self.program.same_type(*param, expected)
        {
            self.attr_error(all, "&on_change: value type does not match table");
        }
    }

    fn check_change_func(&mut self, attr: &Attr, ty: TypeId) {
        let Some(expr) = attr.expr else { return };
        let name = attr.kind.name();
        let Some(func) = self.program.types.func(self.ty(expr)).cloned() else {
            return self.error_about(&format!("{name} must be a function"), &Object::Expr(expr));
        };
        if !self.program.same_type(func.result, ty) {
            self.error_about(
                &format!("{name} function must yield same type as variable"),
                &Object::Expr(expr),
            );
        }
    }

    /// The value of `&priority` among the attributes of a body.
    pub(super) fn priority(&mut self, attrs: &[Attr]) -> Parsed<i64> {
        for attr in attrs {
            let valid = matches!(
                attr.kind,
                AttrKind::Priority
                    | AttrKind::Deprecated
                    | AttrKind::Group
                    | AttrKind::IsUsed
                    | AttrKind::NoCppOpt
                    | AttrKind::NoZamOpt
            );
            if !valid {
                let alone = std::slice::from_ref(attr);
                let object = Object::Attrs(alone, attr.span);
                self.error_about("illegal attribute for function body", &object);
            }
        }
        let Some(expr) = crate::types::attr_expr(attrs, AttrKind::Priority) else { return Ok(0) };
        Ok(match self.evaluate(expr)? {
            Some(Constant::Literal(Literal::Int(value))) => value,
            Some(Constant::Literal(Literal::Count(value))) => {
                i64::try_from(value).unwrap_or(i64::MAX)
            }
            _ => {
                if !is_integral(self.tag(expr)) {
                    let priority_attr = find_attr(attrs, AttrKind::Priority)
                        .cloned()
                        .into_iter()
                        .collect::<Vec<_>>();
                    let span = priority_attr.first().map_or(self.node_span, |attr| attr.span);
                    self.error_about(
                        "expression is not of integral type",
                        &Object::Attrs(&priority_attr, span),
                    );
                }
                0
            }
        })
    }

    /// The texts of `&group` among the attributes of a body.
    pub(super) fn groups(&mut self, attrs: &[Attr]) -> Parsed<Vec<Box<str>>> {
        let mut groups = Vec::new();
        for expr in
            attrs.iter().filter(|attr| attr.kind == AttrKind::Group).filter_map(|attr| attr.expr)
        {
            if let Some(Constant::Literal(Literal::String(text))) = self.evaluate(expr)? {
                groups.push(String::from_utf8_lossy(&text).into());
            }
        }
        Ok(groups)
    }

    /// The text of an attribute, if its expression is a string literal.
    pub(super) fn literal_text(&self, expr: Option<ExprId>) -> Option<Box<str>> {
        match &self.program.exprs[expr?].kind {
            ExprKind::Literal(Literal::String(text)) => Some(String::from_utf8_lossy(text).into()),
            _ => None,
        }
    }
}
