//! Which calls may give no value: the rest of their statement is then skipped.

use super::compile::Compiler;
use crate::ast::ExprKind;
use crate::ast::StmtKind;
use crate::ids::ExprId;
use crate::ids::FuncId;
use crate::ids::StmtId;
use crate::ids::TypeId;
use crate::symbols::GlobalKind;
use crate::types::Flavor;

/// Built-in functions that give no value where they report an error, in order.
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

/// How many calls of functions that return what others return are followed.
const DEEPEST: usize = 4;

impl Compiler<'_> {
    /// Whether a function that has a result may end without one.
    pub(super) fn may_give_nothing(&self, func: FuncId, depth: usize) -> bool {
        let Some(function) = self.p.functions.find(func) else { return false };
        let result = self.p.types.func(function.ty).map_or(TypeId::VOID, |ty| ty.result);
        if function.flavor != Flavor::Function || result == TypeId::VOID || depth > DEEPEST {
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
            StmtKind::Return(Some(expr)) => self.gives_value(*expr, depth),
            StmtKind::List(list) => {
                // Values of `return` elsewhere count too: a statement in front may hold one.
                list.iter().any(|stmt| self.always_returns(*stmt, depth))
            }
            StmtKind::If(_, then, Some(otherwise)) => {
                self.always_returns(*then, depth) && self.always_returns(*otherwise, depth)
            }
            StmtKind::When(_) => true,
            _ => false,
        }
    }

    fn gives_value(&self, expr: ExprId, depth: usize) -> bool {
        let ExprKind::Call(call) = &self.p.exprs[expr].kind else { return true };
        let ExprKind::Global(global) = self.p.exprs[call.callee].kind else { return true };
        match self.p.globals[global].kind {
            GlobalKind::Function(func) => !self.may_give_nothing(func, depth + 1),
            _ => true,
        }
    }
}
