//! Errors about objects: Zeek's `error in LOCATION and LOCATION: MESSAGE (TEXT and TEXT)`.

use crate::describe;
use crate::diagnostics::{Diagnostic, Severity, Subjects};
use crate::ids::{ExprId, GlobalId, StmtId, TypeId};
use crate::program::Program;
use crate::source::Span;
use crate::types::{Attr, Type};

/// The subject of an error.
#[derive(Clone, Debug)]
pub enum Object<'a> {
    /// An expression.
    Expr(ExprId),
    /// A statement.
    Stmt(StmtId),
    /// A type.
    Type(TypeId),
    /// A global, by its name.
    Global(GlobalId),
    /// Attributes.
    Attrs(&'a [Attr], Span),
    /// Any other text.
    Text(&'a [u8], Span),
}

impl Object<'_> {
    fn expr(&self) -> Option<ExprId> {
        if let Self::Expr(expr) = self { Some(*expr) } else { None }
    }

    fn ty(&self) -> Option<TypeId> {
        if let Self::Type(ty) = self { Some(*ty) } else { None }
    }
}

impl Program {
    /// Emits a diagnostic about `object`, and about `other` if present.
    pub fn report_about(
        &mut self,
        severity: Severity,
        message: &str,
        object: &Object<'_>,
        other: Option<&Object<'_>>,
    ) {
        self.report_objects(severity, message, object, other, false);
    }

    /// Like [`Program::report_about`]; with `pinpoint`, the message omits the text of `other`.
    pub fn report_objects(
        &mut self,
        severity: Severity,
        message: &str,
        object: &Object<'_>,
        other: Option<&Object<'_>>,
        pinpoint: bool,
    ) {
        let mut text = message.as_bytes().to_vec();
        text.extend_from_slice(b" (");
        text.extend_from_slice(&self.object_text(object));
        if let Some(other) = other.filter(|_| !pinpoint) {
            text.extend_from_slice(b" and ");
            text.extend_from_slice(&self.object_text(other));
        }
        text.push(b')');
        let (expected, parser_span) = (self.expected_type.take(), self.parser_span.take());
        let (place, mut span) = self.object_location(object);
        let mut location = place;
        let mut about = Subjects {
            exprs: [object.expr(), None],
            types: [object.ty().or(expected), None],
            message: message.len(),
            other: parser_span.unwrap_or(Span::NOWHERE),
            ..Subjects::default()
        };
        if let Some(other) = other {
            let (place, span) = self.object_location(other);
            about.exprs[1] = other.expr();
            about.types[1] = other.ty();
            about.other = span;
            if location.is_empty() {
                location = place;
            } else if !place.is_empty() && place != location {
                location = format!("{location} and {place}");
            }
        }
        // If the objects have no location, the rich form uses the parser's; Zeek's line has none.
        if let Some(parser_span) = parser_span
            && !span.is_somewhere()
            && !about.other.is_somewhere()
        {
            span = parser_span;
        }
        self.emit(&Diagnostic { severity, span, location, text, about });
    }

    /// The text of an object.
    #[must_use]
    pub fn object_text(&self, object: &Object<'_>) -> Vec<u8> {
        match object {
            Object::Expr(expr) => describe::expr(self, *expr),
            Object::Stmt(stmt) => describe::stmt(self, *stmt),
            Object::Type(ty) => describe::type_text(self, *ty).into_bytes(),
            Object::Global(global) => self.name(self.globals[*global].name).as_bytes().to_vec(),
            Object::Attrs(attrs, _) => describe::attrs(self, attrs),
            Object::Text(text, _) => text.to_vec(),
        }
    }

    /// Zeek's text of an object's location, and its span.
    #[must_use]
    pub fn object_location(&self, object: &Object<'_>) -> (String, Span) {
        let span = match object {
            Object::Expr(expr) => self.exprs[*expr].span,
            Object::Stmt(stmt) => self.stmts[*stmt].span,
            Object::Type(ty) => {
                let data = self.types.data(*ty);
                if !data.span.is_somewhere()
                    && !matches!(
                        data.ty,
                        Type::Table(_) | Type::Vector(_) | Type::List(_) | Type::File
                    )
                {
                    return (describe::tag_name(&data.ty).to_owned(), Span::NOWHERE);
                }
                data.span
            }
            // A name is on one line.
            Object::Global(global) => {
                let span = self.globals[*global].span;
                Span { last: span.first, ..span }
            }
            Object::Attrs(_, span) | Object::Text(_, span) => *span,
        };
        (self.sources.location(span), span)
    }
}
