//! Anonymization of addresses.

use super::{Table, arg};
use crate::evaluate::Stop;
use crate::support::net::{Anonymizer, Method};
use crate::value::{Value, v4};
use crate::vm::Vm;

type Result<T> = std::result::Result<T, Stop>;

/// One anonymizer for each method, in the order of the type `IPAddrAnonymization`.
pub struct Anonymizers([Anonymizer; 7]);

impl Default for Anonymizers {
    fn default() -> Self {
        use Method::{
            Keep, PrefixA50, PrefixMd5, PrefixSha256, RandomMd5, RandomSha256, Sequential,
        };
        let methods =
            [Keep, Sequential, PrefixA50, RandomMd5, PrefixMd5, RandomSha256, PrefixSha256];
        Self(methods.map(Anonymizer::new))
    }
}

/// Index of the method that preserves prefixes.
const A50: usize = 2;

/// The functions.
pub const TABLE: Table = &[
    ("anonymize_addr", anonymize_addr),
    ("preserve_prefix", |vm, a| preserve(vm, arg(a, 0), arg(a, 1).count(), "preserve_prefix")),
    ("preserve_subnet", |vm, a| {
        let width = match arg(a, 0) {
            Value::Net4(_, width) => u64::from(*width),
            _ => 0,
        };
        preserve(vm, arg(a, 0), width, "preserve_subnet")
    }),
];

fn anonymize_addr(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let Value::Addr4(address) = arg(args, 0) else {
        vm.builtin_error("anonymize_addr() not supported for IPv6 addresses");
        return Ok(Value::Unset);
    };
    let option = match arg(args, 1).count() {
        0 => "orig_addr_anonymization",
        1 => "resp_addr_anonymization",
        _ => "other_addr_anonymization",
    };
    // Without an option the address is unchanged.
    let method = match vm.global_named(option) {
        Value::Enum(_, method) => usize::try_from(method).unwrap_or(0),
        _ => 0,
    };
    let state = &mut vm.m.state;
    let replaced = state
        .anonymizers
        .0
        .get_mut(method)
        .map(|anonymizer| anonymizer.anonymize(*address, &mut state.random, &state.hashes));
    Ok(Value::addr(v4(replaced.unwrap_or(*address))))
}

fn preserve(vm: &mut Vm<'_>, prefix: &Value, bits: u64, name: &str) -> Result<Value> {
    let address = match prefix {
        Value::Addr4(address) | Value::Net4(address, _) => *address,
        _ => {
            vm.builtin_error(format!("{name}() not supported for IPv6 addresses"));
            return Ok(Value::Unset);
        }
    };
    let state = &mut vm.m.state;
    let bits = u32::try_from(bits.min(32)).unwrap_or(32);
    let kept = state.anonymizers.0[A50].preserve_prefix(address, bits, &mut state.random);
    if !kept {
        vm.builtin_error("prefix preservation specified after anonymization begun");
    }
    Ok(Value::Unset)
}
