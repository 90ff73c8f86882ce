//! Expiry of table entries.

use std::rc::Rc;

use super::events::{Due, ExpiryWalk};
use super::tables::Change;
use super::{Callee, Vm};
use crate::evaluate::Stop;
use crate::value::table::{TableAttrs, parts};
use crate::value::{Table, Value};

impl Vm<'_> {
    /// From now on the entries of a table expire, where it has an attribute that says so.
    pub(crate) fn watch_expiry(&mut self, table: &Rc<Table>) {
        if table.attrs().is_some_and(|attrs| attrs.expire.is_some())
            && !table.expiring.replace(true)
        {
            // Time may not be known yet: due at once.
            self.add_timer(1.0, Due::Expire(Rc::downgrade(table), None));
        }
    }

    /// Removes entries of a table whose time is over, and sets its next timer. `walk` continues a visit.
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
                walk.into_iter().for_each(|walk| end(table, walk));
                table.expiring.set(false);
                return Ok(());
            }
        };
        let step = match self.global_named("table_incremental_step") {
            Value::Count(step) => usize::try_from(step).unwrap_or(usize::MAX).max(1),
            _ => 5_000,
        };
        let mut walk = walk.unwrap_or_else(|| match table.robust_begins() {
            Some(walk) => ExpiryWalk::Slots(walk, None),
            None => {
                table.expiry_begins();
                ExpiryWalk::Places(0)
            }
        });
        let result = self.expire_step(table, &attrs, timeout, step, &mut walk);
        let (option, walk) = match result {
            Ok(false) => ("table_expire_delay", Some(walk)),
            _ => {
                end(table, walk);
                ("table_expire_interval", None)
            }
        };
        let delay = self.global_named(option).double();
        let due = (self.m.now + delay).max(self.m.now.next_up());
        self.add_timer(due, Due::Expire(Rc::downgrade(table), walk));
        result.map(|_| ())
    }

    /// Visits up to `step` entries; returns whether it visited the last.
    fn expire_step(
        &mut self,
        table: &Rc<Table>,
        attrs: &TableAttrs,
        timeout: f64,
        step: usize,
        walk: &mut ExpiryWalk,
    ) -> Result<bool, Stop> {
        let now = self.m.now;
        // Entries may come and go while functions are called: places are looked at again.
        let mut looked = 0;
        while looked < step {
            let Some(at) = next_place(table, walk) else { return Ok(true) };
            let Some((key, value, time)) = table.entry_at(at) else { continue };
            looked += 1;
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
        // A visit that has seen all is over, although it has had its number of entries.
        match walk {
            ExpiryWalk::Slots(robust, ahead) => {
                *ahead = table.robust_next(robust);
                Ok(ahead.is_none())
            }
            ExpiryWalk::Places(next) => Ok(*next >= table.places_end()),
        }
    }

    /// When an entry was used, in whole seconds since the first packet.
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

/// The place that a walk visits next; none after the last.
fn next_place(table: &Table, walk: &mut ExpiryWalk) -> Option<usize> {
    match walk {
        ExpiryWalk::Slots(walk, ahead) => {
            ahead.take().or_else(|| table.robust_next(walk)).map(|at| at as usize)
        }
        ExpiryWalk::Places(next) => {
            *next += 1;
            Some(*next - 1).filter(|at| *at < table.places_end())
        }
    }
}

fn end(table: &Table, walk: ExpiryWalk) {
    match walk {
        ExpiryWalk::Slots(walk, _) => table.robust_ends(walk),
        ExpiryWalk::Places(_) => table.expiry_ends(),
    }
}
