//! Expiry of table entries.

use std::rc::Rc;

use super::events::{ExpiryWalk, TimerAction};
use super::tables::Change;
use super::{Callee, Vm};
use crate::evaluate::Stop;
use crate::value::table::{TableAttrs, parts};
use crate::value::{Table, Value};

impl Vm<'_> {
    /// Starts the expiry timer of a table that has an expiry attribute.
    pub(crate) fn watch_expiry(&mut self, table: &Rc<Table>) {
        if table.attrs().is_some_and(|attrs| attrs.expire.is_some())
            && !table.expiring.replace(true)
        {
            // Network time may not be known yet: the timer is due at once.
            self.add_timer(1.0, TimerAction::Expire(Rc::downgrade(table), None));
        }
    }

    /// Removes expired entries of a table and sets its next timer. `walk` is an iteration to continue.
    pub(crate) fn expire(
        &mut self,
        table: &Rc<Table>,
        walk: Option<ExpiryWalk>,
    ) -> Result<(), Stop> {
        let Some(attrs) = table.attrs() else { return Ok(()) };
        let Some((_, expr)) = attrs.expire else { return Ok(()) };
        let timeout = match self.eval(expr) {
            Ok(Value::Interval(timeout)) if timeout >= 0.0 => timeout,
            _ => {
                walk.into_iter().for_each(|walk| end_walk(table, walk));
                table.expiring.set(false);
                return Ok(());
            }
        };
        let step = match self.global_named("table_incremental_step") {
            Value::Count(step) => usize::try_from(step).unwrap_or(usize::MAX).max(1),
            _ => 5_000,
        };
        let mut walk = walk.unwrap_or_else(|| match table.begin_robust_iteration() {
            Some(walk) => ExpiryWalk::Slots(walk, None),
            None => {
                table.begin_expiry();
                ExpiryWalk::Positions(0)
            }
        });
        let result = self.expire_step(table, &attrs, timeout, step, &mut walk);
        let (option, walk) = match result {
            Ok(false) => ("table_expire_delay", Some(walk)),
            _ => {
                end_walk(table, walk);
                ("table_expire_interval", None)
            }
        };
        let delay = self.global_named(option).double();
        let due = (self.m.now + delay).max(self.m.now.next_up());
        self.add_timer(due, TimerAction::Expire(Rc::downgrade(table), walk));
        result.map(|_| ())
    }

    /// Visits up to `step` entries. Returns whether the iteration is complete.
    fn expire_step(
        &mut self,
        table: &Rc<Table>,
        attrs: &TableAttrs,
        timeout: f64,
        step: usize,
        walk: &mut ExpiryWalk,
    ) -> Result<bool, Stop> {
        let now = self.m.now;
        // Called functions may add and remove entries, so each entry is read by its index.
        let mut visited = 0;
        while visited < step {
            let Some(at) = next_index(table, walk) else { return Ok(true) };
            let Some((key, value, time)) = table.entry_at(at) else { continue };
            visited += 1;
            let used = self.expiry_time(time);
            if used == 0.0 || used + timeout >= now {
                continue;
            }
            if let Some(func) = attrs.expire_func {
                match self.call_expire_func(table, func, &key) {
                    Ok(longer) if longer > 0.0 => {
                        table.touch(at, now - timeout + longer);
                        continue;
                    }
                    Ok(_) | Err(Stop::Error) => (),
                    Err(stop) => return Err(stop),
                }
                if table.find(parts(&key)).is_none() {
                    continue;
                }
            }
            table.remove(parts(&key));
            self.changed(table, Change::Expired, parts(&key), &value)?;
            self.object_changed_rc(table);
        }
        // The iteration may be complete after exactly `step` entries.
        match walk {
            ExpiryWalk::Slots(robust, ahead) => {
                *ahead = table.next_robust_index(robust);
                Ok(ahead.is_none())
            }
            ExpiryWalk::Positions(next) => Ok(*next >= table.indexes_end()),
        }
    }

    /// The time of an entry, rounded down to whole seconds since the first packet.
    fn expiry_time(&self, time: f64) -> f64 {
        let start = self.m.state.first_packet;
        if time == 0.0 { start } else { start + (time - start).trunc() }
    }

    fn call_expire_func(
        &mut self,
        table: &Rc<Table>,
        expr: crate::ids::ExprId,
        key: &Value,
    ) -> Result<f64, Stop> {
        let Value::Func(func) = self.eval(expr)? else { return Ok(0.0) };
        if matches!(self.callee(func.func), Callee::Missing) {
            self.error_at(expr, "value used but not set");
            return Ok(0.0);
        }
        let mut args = vec![Value::Table(Rc::clone(table))];
        let params = self.p.types.params(func.ty);
        let takes_any = params.len() == 2
            && params.get(1).is_some_and(|param| param.ty == crate::ids::TypeId::ANY);
        if takes_any {
            args.push(key.clone());
        } else {
            args.extend(parts(key).iter().cloned());
        }
        Ok(self.call(&func, &args)?.double())
    }
}

/// The index of the next entry of an iteration; `None` at its end.
fn next_index(table: &Table, walk: &mut ExpiryWalk) -> Option<usize> {
    match walk {
        ExpiryWalk::Slots(walk, ahead) => {
            ahead.take().or_else(|| table.next_robust_index(walk)).map(|at| at as usize)
        }
        ExpiryWalk::Positions(next) => {
            *next += 1;
            Some(*next - 1).filter(|at| *at < table.indexes_end())
        }
    }
}

fn end_walk(table: &Table, walk: ExpiryWalk) {
    match walk {
        ExpiryWalk::Slots(walk, _) => table.end_robust_iteration(walk),
        ExpiryWalk::Positions(_) => table.end_expiry(),
    }
}
