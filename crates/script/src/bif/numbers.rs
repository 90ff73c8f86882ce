//! Numbers, times, addresses, networks and ports.

use super::strings::bytes;
use super::{Table, arg, has_nul};
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::literal::{Port, Protocol};
use crate::support::text::convert;
use crate::value::{Record, Value, Vector, mask};
use crate::vm::Vm;

type Result<T> = std::result::Result<T, Stop>;

/// The functions of this file.
pub(super) const TABLE: Table = &[
    ("floor", |_, a| Ok(Value::Double(arg(a, 0).double().floor()))),
    ("ceil", |_, a| Ok(Value::Double(arg(a, 0).double().ceil()))),
    ("sqrt", sqrt),
    ("exp", |_, a| Ok(Value::Double(arg(a, 0).double().exp()))),
    ("ln", |_, a| Ok(Value::Double(arg(a, 0).double().ln()))),
    ("log2", |_, a| Ok(Value::Double(arg(a, 0).double().log2()))),
    ("log10", |_, a| Ok(Value::Double(arg(a, 0).double().log10()))),
    ("pow", |_, a| Ok(Value::Double(arg(a, 0).double().powf(arg(a, 1).double())))),
    ("modulo", modulo),
    ("int_to_count", int_to_count),
    ("double_to_count", double_to_count),
    ("double_to_int", |_, a| Ok(Value::Int(convert::rounded(arg(a, 0).double())))),
    ("int_to_double", |_, a| Ok(Value::Double(arg(a, 0).double()))),
    ("count_to_double", |_, a| Ok(Value::Double(arg(a, 0).double()))),
    ("double_to_interval", |_, a| Ok(Value::Interval(arg(a, 0).double()))),
    ("double_to_time", |_, a| Ok(Value::Time(arg(a, 0).double()))),
    ("interval_to_double", |_, a| Ok(Value::Double(arg(a, 0).double()))),
    ("time_to_double", |_, a| Ok(Value::Double(arg(a, 0).double()))),
    ("to_int", to_int),
    ("to_count", to_count),
    ("to_double", to_double),
    ("to_addr", to_addr),
    ("to_subnet", to_subnet),
    ("to_port", to_port),
    ("is_valid_ip", |_, a| Ok(Value::Bool(convert::addr(bytes(a, 0)).is_some()))),
    ("is_valid_subnet", |_, a| Ok(Value::Bool(convert::subnet(bytes(a, 0)).is_some()))),
    ("port_to_count", |_, a| Ok(Value::Count(u64::from(arg(a, 0).as_port().number)))),
    ("count_to_port", count_to_port),
    ("get_port_transport_proto", |vm, a| {
        // The values of `transport_proto`.
        let number = match arg(a, 0).as_port().protocol {
            Protocol::Unknown => 0,
            Protocol::Tcp => 1,
            Protocol::Udp => 2,
            Protocol::Icmp => 3,
        };
        Ok(Value::Enum(vm.result_type(), number))
    }),
    ("is_tcp_port", |_, a| Ok(Value::Bool(arg(a, 0).as_port().protocol == Protocol::Tcp))),
    ("is_udp_port", |_, a| Ok(Value::Bool(arg(a, 0).as_port().protocol == Protocol::Udp))),
    ("is_icmp_port", |_, a| Ok(Value::Bool(arg(a, 0).as_port().protocol == Protocol::Icmp))),
    ("is_v4_addr", |_, a| Ok(Value::Bool(matches!(arg(a, 0), Value::Addr4(_))))),
    ("is_v6_addr", |_, a| Ok(Value::Bool(matches!(arg(a, 0), Value::Addr6(_))))),
    ("is_v4_subnet", |_, a| Ok(Value::Bool(matches!(arg(a, 0), Value::Net4(..))))),
    ("is_v6_subnet", |_, a| Ok(Value::Bool(matches!(arg(a, 0), Value::Net6(_))))),
    ("addr_to_subnet", |_, a| Ok(Value::subnet(arg(a, 0).addr_bytes().unwrap_or_default(), 128))),
    ("subnet_to_addr", |_, a| {
        Ok(arg(a, 0).as_subnet().map_or(Value::Unset, |net| Value::addr(net.prefix)))
    }),
    ("subnet_width", |_, a| {
        Ok(Value::Count(match arg(a, 0) {
            Value::Net4(_, width) => u64::from(*width),
            Value::Net6(net) => u64::from(net.width),
            _ => 0,
        }))
    }),
    ("mask_addr", |vm, a| {
        // Zeek uses only eight bits of the width.
        let width = arg(a, 1).count() & 0xff;
        let (version, limit, more) = match arg(a, 0) {
            Value::Addr4(_) => (4, 32, 96),
            _ => (6, 128, 0),
        };
        if width > limit {
            let text = format!("Bad IPAddr(v{version}) IPPrefix length : {width}");
            vm.report(Severity::Error, &text);
            return Ok(Value::subnet([0; 16], 0));
        }
        Ok(Value::subnet(arg(a, 0).addr_bytes().unwrap_or_default(), (width + more) as u8))
    }),
    ("remask_addr", remask_addr),
    ("addr_to_counts", |vm, a| {
        let items = match arg(a, 0) {
            Value::Addr4(bytes) => vec![Value::Count(u64::from(u32::from_be_bytes(*bytes)))],
            other => other
                .addr_bytes()
                .unwrap_or_default()
                .as_chunks::<4>()
                .0
                .iter()
                .map(|word| Value::Count(u64::from(u32::from_be_bytes(*word))))
                .collect(),
        };
        Ok(Value::Vector(Vector::new(vm.result_type(), items)))
    }),
    ("counts_to_addr", counts_to_addr),
    ("count_to_v4_addr", |vm, a| match u32::try_from(arg(a, 0).count()) {
        Ok(number) => Ok(Value::Addr4(number.to_be_bytes())),
        Err(_) => {
            vm.builtin_error_with("conversion of non-IPv4 count to addr", arg(a, 0));
            Ok(Value::Addr4([0; 4]))
        }
    }),
    ("raw_bytes_to_v4_addr", |vm, a| match bytes(a, 0).first_chunk::<4>() {
        Some(bytes) => Ok(Value::Addr4(*bytes)),
        None => {
            vm.builtin_error("too short a string as input to raw_bytes_to_v4_addr()");
            Ok(Value::Addr4([0; 4]))
        }
    }),
    ("raw_bytes_to_v6_addr", |vm, a| match bytes(a, 0).first_chunk::<16>() {
        Some(bytes) => Ok(Value::addr(*bytes)),
        None => {
            vm.builtin_error("too short a string as input to raw_bytes_to_v6_addr()");
            Ok(Value::addr([0; 16]))
        }
    }),
    ("routing0_data_to_addrs", |vm, a| {
        let data = bytes(a, 0);
        if !data.len().wrapping_sub(4).is_multiple_of(16) {
            let text = format!("Bad ip6_routing data length: {}", data.len());
            vm.report(Severity::Warning, text);
        }
        let items = data
            .get(4..)
            .unwrap_or(&[])
            .as_chunks::<16>()
            .0
            .iter()
            .map(|bytes| Value::addr(*bytes))
            .collect();
        Ok(Value::Vector(Vector::new(vm.result_type(), items)))
    }),
    ("addr_to_ptr_name", |_, a| {
        Ok(Value::string(convert::to_ptr_name(arg(a, 0).addr_bytes().unwrap_or_default())))
    }),
    ("ptr_name_to_addr", |vm, a| {
        has_nul(vm, bytes(a, 0));
        match convert::ptr_name(bytes(a, 0)) {
            Some(bytes) => Ok(Value::addr(bytes)),
            None => {
                vm.builtin_error_with("bad PTR name", arg(a, 0));
                // A name with the length of those in ip6.arpa yields an IPv6 address.
                let is_long = bytes(a, 0).len() == 72;
                Ok(if is_long { Value::addr([0; 16]) } else { Value::Addr4([0; 4]) })
            }
        }
    }),
    ("bytestring_to_count", |vm, a| {
        match convert::bytes_to_count(bytes(a, 0), arg(a, 1).truth()) {
            Some(count) => Ok(Value::Count(count)),
            None => {
                let text = "unsupported byte length for bytestring_to_count";
                vm.builtin_error(text);
                Ok(Value::Count(0))
            }
        }
    }),
    ("bytestring_to_double", |vm, a| match bytes(a, 0).first_chunk::<8>() {
        Some(word) if bytes(a, 0).len() == 8 => Ok(Value::Double(f64::from_be_bytes(*word))),
        _ => {
            vm.builtin_error("bad conversion to double");
            Ok(Value::Double(0.0))
        }
    }),
    ("bytestring_to_float", |vm, a| match bytes(a, 0).first_chunk::<4>() {
        Some(word) if bytes(a, 0).len() == 4 => {
            Ok(Value::Double(f64::from(f32::from_be_bytes(*word))))
        }
        _ => {
            vm.builtin_error("bad conversion to float");
            Ok(Value::Double(0.0))
        }
    }),
    ("haversine_distance", |_, a| {
        let [lat1, long1, lat2, long2] =
            [0, 1, 2, 3].map(|index| arg(a, index).double().to_radians());
        let part = ((lat2 - lat1) / 2.0).sin().powi(2)
            + lat1.cos() * lat2.cos() * ((long2 - long1) / 2.0).sin().powi(2);
        Ok(Value::Double(2.0 * 3_958.8 * part.sqrt().asin()))
    }),
    ("hrw_weight", |_, a| {
        let (digest, site) = (arg(a, 0).count() & 0x7fff_ffff, arg(a, 1).count());
        let weight = |x: u64| x.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        Ok(Value::Count(weight(weight(site) ^ digest) & 0x7fff_ffff))
    }),
    ("fmt_ftp_port", |vm, a| {
        Ok(match arg(a, 0) {
            Value::Addr4([b0, b1, b2, b3]) => {
                let port = arg(a, 1).as_port().number;
                Value::string(format!("{b0},{b1},{b2},{b3},{},{}", port >> 8, port & 0xff))
            }
            other => {
                let text = "conversion of non-IPv4 address in fmt_ftp_port";
                vm.builtin_error_with(text, other);
                Value::string("")
            }
        })
    }),
    ("parse_ftp_port", |vm, a| {
        let found = convert::ftp_port(bytes(a, 0));
        Ok(ftp_port(vm, found.map(|(addr, port)| (crate::value::v4(addr), port, true))))
    }),
    ("parse_ftp_pasv", |vm, a| {
        let found = convert::ftp_pasv(bytes(a, 0));
        Ok(ftp_port(vm, found.map(|(addr, port)| (crate::value::v4(addr), port, true))))
    }),
    ("parse_eftp_port", |vm, a| {
        let found = convert::ftp_eprt(bytes(a, 0));
        Ok(ftp_port(vm, Some(found)))
    }),
    ("parse_ftp_epsv", |vm, a| {
        let text = bytes(a, 0);
        let inner = text
            .iter()
            .position(|byte| *byte == b'(')
            .map(|at| text.get(at + 1..).unwrap_or(&[]))
            .unwrap_or(&[]);
        let end = inner.iter().position(|byte| *byte == b')').unwrap_or(inner.len());
        let found = convert::ftp_eprt(inner.get(..end).unwrap_or(&[]));
        Ok(ftp_port(vm, Some(found)))
    }),
];

fn ftp_port(vm: &Vm<'_>, found: Option<([u8; 16], u16, bool)>) -> Value {
    let (addr, number, valid) = found.unwrap_or((crate::value::v4([0; 4]), 0, false));
    Value::Record(Record::new(
        vm.result_type(),
        vec![
            Value::addr(addr),
            Value::Port(Port { number, protocol: Protocol::Tcp }),
            Value::Bool(valid),
        ],
    ))
}

fn sqrt(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let x = arg(args, 0).double();
    if x < 0.0 {
        vm.report(Severity::Error, "negative sqrt argument");
        return Ok(Value::Double(-1.0));
    }
    Ok(Value::Double(x.sqrt()))
}

fn modulo(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let (a, b) = (arg(args, 0).int(), arg(args, 1).int());
    if b == 0 {
        vm.report(Severity::Error, "modulo by zero");
        return Ok(Value::Int(0));
    }
    // The result has the sign of the divisor.
    let rest = a.wrapping_rem(b);
    Ok(Value::Int(rest.wrapping_add(b).wrapping_rem(b)))
}

fn int_to_count(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let number = arg(args, 0).int();
    if number < 0 {
        vm.builtin_error_with("bad conversion to count", arg(args, 0));
        return Ok(Value::Count(0));
    }
    Ok(Value::Count(number as u64))
}

fn double_to_count(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let number = arg(args, 0).double();
    if number < 0.0 {
        vm.builtin_error_with("bad conversion to count", arg(args, 0));
        return Ok(Value::Count(0));
    }
    Ok(Value::Count(convert::rounded(number) as u64))
}

/// The requested base, 10 for 0; `None` if the base is not supported.
fn base_of(args: &[Value]) -> Option<u64> {
    match arg(args, 1).count() {
        0 => Some(10),
        base => (2..=36).contains(&base).then_some(base),
    }
}

/// The first argument; reports an error and returns `None` if it contains a NUL.
fn c_string<'a>(vm: &mut Vm<'_>, args: &'a [Value]) -> Option<&'a [u8]> {
    let text = bytes(args, 0);
    (!has_nul(vm, text)).then_some(text)
}

fn to_int(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let text = c_string(vm, args);
    match base_of(args).and_then(|base| convert::int(text?, base)) {
        Some(number) => Ok(Value::Int(number)),
        None => {
            vm.builtin_error_with("bad conversion to integer", arg(args, 0));
            Ok(Value::Int(0))
        }
    }
}

fn to_count(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let text = c_string(vm, args);
    match base_of(args).and_then(|base| convert::count(text?, base)) {
        Some(number) => Ok(Value::Count(number)),
        None => {
            vm.builtin_error_with("bad conversion to count", arg(args, 0));
            Ok(Value::Count(0))
        }
    }
}

fn to_double(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let text = c_string(vm, args);
    match text.and_then(convert::double) {
        Some(number) => Ok(Value::Double(number)),
        None => {
            vm.builtin_error_with("bad conversion to double", arg(args, 0));
            Ok(Value::Double(0.0))
        }
    }
}

fn to_addr(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    match convert::addr(bytes(args, 0)) {
        Some(addr) => Ok(Value::addr(addr)),
        None => {
            vm.builtin_error_with("failed converting string to IP address", arg(args, 0));
            Ok(Value::addr([0; 16]))
        }
    }
}

fn to_subnet(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    match convert::prefix(bytes(args, 0)) {
        Some((prefix, width)) => Ok(Value::subnet(prefix, width)),
        None => {
            vm.builtin_error_with("failed converting string to IP prefix", arg(args, 0));
            Ok(Value::subnet([0; 16], 0))
        }
    }
}

fn to_port(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let text = c_string(vm, args);
    match text.and_then(convert::port) {
        Some((number, transport)) => Ok(port_of(vm, number as u64, transport.into())),
        None => {
            vm.builtin_error("wrong port format, must be /[0-9]{1,5}\\/(tcp|udp|icmp)/");
            Ok(Value::Port(Port { number: 0, protocol: Protocol::Unknown }))
        }
    }
}

fn count_to_port(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let name = super::strings::short(vm, arg(args, 1));
    let protocol = match name.as_str() {
        "tcp" => Protocol::Tcp,
        "udp" => Protocol::Udp,
        "icmp" => Protocol::Icmp,
        _ => Protocol::Unknown,
    };
    Ok(port_of(vm, arg(args, 0).count(), protocol))
}

/// A port; 0 with a warning if the number does not fit.
fn port_of(vm: &mut Vm<'_>, number: u64, protocol: Protocol) -> Value {
    // Zeek uses only 32 bits of the number.
    let number = number as u32;
    let number = u16::try_from(number).unwrap_or_else(|_| {
        vm.report(Severity::Warning, format!("bad port number {}", number as i32));
        0
    });
    Value::Port(Port { number, protocol })
}

fn remask_addr(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let (Some(a), Some(b)) = (arg(args, 0).addr_bytes(), arg(args, 1).addr_bytes()) else {
        return Ok(Value::Unset);
    };
    // Zeek uses only 32 bits of the width, with a sign.
    let width = arg(args, 2).count() as i32;
    if !(0..=128).contains(&width) {
        vm.report(Severity::Error, format!("Bad IPAddr::Mask value {width}"));
        vm.report(Severity::Error, format!("Bad IPAddr::ReverseMask value {width}"));
        let both = u128::from_be_bytes(a) | u128::from_be_bytes(b);
        return Ok(Value::addr(both.to_be_bytes()));
    }
    let width = width as u8;
    let top = u128::from_be_bytes(mask(a, width));
    let low = u128::from_be_bytes(b) ^ u128::from_be_bytes(mask(b, width));
    Ok(Value::addr((top | low).to_be_bytes()))
}

fn counts_to_addr(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let words: Vec<u32> = arg(args, 0)
        .vector()
        .map(|vector| vector.items().iter().map(|item| item.count() as u32).collect())
        .unwrap_or_default();
    match words.as_slice() {
        [one] => Ok(Value::Addr4(one.to_be_bytes())),
        [a, b, c, d] => {
            let mut addr = [0; 16];
            for (chunk, word) in addr.as_chunks_mut::<4>().0.iter_mut().zip([a, b, c, d]) {
                *chunk = word.to_be_bytes();
            }
            Ok(Value::addr(addr))
        }
        _ => {
            vm.builtin_error_with("invalid vector size", arg(args, 0));
            Ok(Value::addr([0; 16]))
        }
    }
}
