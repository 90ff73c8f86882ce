//! Expiry of table entries.

use std::rc::Rc;

use super::Vm;
use super::tables::Change;
use crate::evaluate::Stop;
use crate::value::table::parts;
use crate::value::{Table, Value};

impl Vm<'_> {
    /// From now on the entries of a table expire, where it has an attribute that says so.
    pub(crate) fn watch_expiry(&mut self, table: &Rc<Table>) {
        if table.attrs().is_some_and(|attrs| attrs.expire.is_some())
            && !table.expiring.replace(true)
        {
            if self.m.expiring.len() > 64 {
                self.m.expiring.retain(|table| table.strong_count() > 0);
            }
            self.m.expiring.push(Rc::downgrade(table));
        }
    }

    /// Looks at all tables whose entries expire.
    ///
    /// # Errors
    /// [`Stop`] where the program stops.
    pub fn expire_tables(&mut self, now: f64) -> Result<(), Stop> {
        if self.m.expiring.is_empty() {
            return Ok(());
        }
        let interval = match self.global_named("table_expire_interval") {
            Value::Interval(seconds) => seconds,
            _ => 10.0,
        };
        if now < self.m.state.next_sweep {
            return Ok(());
        }
        self.m.state.next_sweep = now + interval;
        let step = match self.global_named("table_incremental_step") {
            Value::Count(step) => usize::try_from(step).unwrap_or(usize::MAX).max(1),
            _ => 5_000,
        };
        let tables = self.m.expiring.clone();
        for table in tables.iter().filter_map(std::rc::Weak::upgrade) {
            self.expire(&table, now, step)?;
        }
        Ok(())
    }

    fn expire(&mut self, table: &Rc<Table>, now: f64, step: usize) -> Result<(), Stop> {
        let Some(attrs) = table.attrs() else { return Ok(()) };
        let Some((_, expr)) = attrs.expire else { return Ok(()) };
        let Ok(Value::Interval(timeout)) = self.eval(expr) else { return Ok(()) };
        if timeout < 0.0 {
            return Ok(());
        }
        // Entries may come and go while functions are called: places are looked at again.
        let mut looked = 0;
        let mut place = 0;
        let order = table.walk_begins();
        let places = order.unwrap_or_else(|| (0..table.places_end() as u32).collect());
        let mut result = Ok(());
        while let Some(at) = places.get(place) {
            place += 1;
            let Some((key, value, time)) = table.entry_at(*at as usize) else { continue };
            looked += 1;
            if looked > step {
                break;
            }
            if time == 0.0 {
                table.touch(*at as usize, now - 1e-9);
                continue;
            }
            if time + timeout >= now {
                continue;
            }
            if let Some(func) = attrs.expire_func {
                match self.call_expire_func(table, func, &key) {
                    Ok(longer) if longer > 0.0 => {
                        table.touch(*at as usize, now - timeout + longer);
                        continue;
                    }
                    Ok(_) | Err(Stop::Error) => (),
                    Err(stop) => {
                        result = Err(stop);
                        break;
                    }
                }
                if table.find(parts(&key)).is_none() {
                    continue;
                }
            }
            table.remove(parts(&key));
            if let Err(stop) = self.changed(table, Change::Expired, parts(&key), &value) {
                result = Err(stop);
                break;
            }
            self.object_changed_rc(table);
        }
        table.walk_ends();
        result
    }

    fn call_expire_func(
        &mut self,
        table: &Rc<Table>,
        expr: crate::ids::ExprId,
        key: &Value,
    ) -> Result<f64, Stop> {
        let Value::Func(func) = self.eval(expr)? else { return Ok(0.0) };
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
