//! Calls that may return no value, which skips the rest of their statement.

use super::compile::Compiler;
use crate::ast::ExprKind;
use crate::ast::StmtKind;
use crate::ids::ExprId;
use crate::ids::FuncId;
use crate::ids::StmtId;
use crate::ids::TypeId;
use crate::symbols::GlobalKind;
use crate::types::Flavor;

/// Built-in functions that return no value after they report an error, sorted.
const MAY_FAIL: &[&str] = &[
    "Broker::publish",
    "Cluster::publish",
    "Cluster::publish_hrw",
    "Cluster::publish_rr",
    "Files::__lookup_file",
    "anonymize_addr",
    "bloomfilter_basic_init",
    "bloomfilter_basic_init2",
    "bloomfilter_counting_init",
    "bloomfilter_intersect",
    "bloomfilter_merge",
    "cat_sep",
    "filter_subnet_table",
    "get_plugin_components",
    "hll_cardinality_copy",
    "hll_cardinality_init",
    "is_icmp_port",
    "ljust",
    "matching_subnets",
    "order",
    "paraglob_init",
    "rjust",
    "sct_verify",
    "sort",
    "table_keys",
    "table_pattern_matcher_stats",
    "table_values",
];

/// Maximum depth of nested `return f(x)` calls to follow.
const MAX_CALL_DEPTH: usize = 4;

impl Compiler<'_> {
    /// Whether a function with a result type may end without a value.
    pub(super) fn may_return_no_value(&self, func: FuncId, depth: usize) -> bool {
        let Some(function) = self.p.functions.find(func) else { return false };
        let result = self.p.types.func(function.ty).map_or(TypeId::VOID, |ty| ty.result);
        if function.flavor != Flavor::Function || result == TypeId::VOID || depth > MAX_CALL_DEPTH {
            return false;
        }
        match function.bodies.first() {
            None => MAY_FAIL.binary_search(&self.p.name(function.name)).is_ok(),
            Some(body) => !self.always_returns(self.p.bodies[*body].stmt, depth),
        }
    }

    /// Whether a statement always ends in `return` with a value.
    fn always_returns(&self, stmt: StmtId, depth: usize) -> bool {
        match &self.p.stmts[stmt].kind {
            StmtKind::Return(Some(expr)) => self.returns_value(*expr, depth),
            StmtKind::List(list) => {
                // A `return` in any statement of the list suffices: a preceding statement may contain it.
                list.iter().any(|stmt| self.always_returns(*stmt, depth))
            }
            StmtKind::If(_, then, Some(otherwise)) => {
                self.always_returns(*then, depth) && self.always_returns(*otherwise, depth)
            }
            StmtKind::When(_) => true,
            _ => false,
        }
    }

    fn returns_value(&self, expr: ExprId, depth: usize) -> bool {
        let ExprKind::Call(call) = &self.p.exprs[expr].kind else { return true };
        let ExprKind::Global(global) = self.p.exprs[call.callee].kind else { return true };
        match self.p.globals[global].kind {
            GlobalKind::Function(func) => !self.may_return_no_value(func, depth + 1),
            _ => true,
        }
    }
}
