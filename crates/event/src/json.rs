//! Formats events as JSON, with values as in Zeek's `to_json`.

use std::io::Write;

use gannet_base::ConnId;
use gannet_base::Proto;
use gannet_base::Uid;
use gannet_log::escape_json;

use crate::decl::Param;
use crate::decl::Type;
use crate::events::Raised;
use crate::read::Reader;
use crate::read::Value;
use crate::state::ConnState;
use crate::state::FileState;

/// Appends an event as a JSON object: `{"ts":…,"event":"NAME","args":{"PARAMETER":VALUE,…}}`, without a line end.
pub fn write_json(out: &mut Vec<u8>, event: &Raised<'_>) {
    out.extend_from_slice(b"{\"ts\":");
    seconds(out, event.time.as_nanos());
    out.extend_from_slice(b",\"event\":\"");
    out.extend_from_slice(event.decl.name.as_bytes());
    out.extend_from_slice(b"\",\"args\":");
    fields(out, event, &mut event.args(), event.decl.params);
    out.push(b'}');
}

/// Appends the next value of `from` as JSON.
pub fn write_json_value(out: &mut Vec<u8>, event: &Raised<'_>, from: &mut Reader<'_>, ty: &Type) {
    if let Some(v) = from.value(ty) {
        value(out, event, from, ty, &v);
    }
}

fn fields(out: &mut Vec<u8>, event: &Raised<'_>, from: &mut Reader<'_>, params: &[Param]) {
    out.push(b'{');
    let mut first = true;
    for param in params {
        let Some(v) = from.param(param) else { continue };
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        name(out, param.name);
        value(out, event, from, &param.ty, &v);
    }
    out.push(b'}');
}

fn name(out: &mut Vec<u8>, name: &str) {
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn text(out: &mut Vec<u8>, v: &[u8]) {
    out.push(b'"');
    escape_json(out, v);
    out.push(b'"');
}

/// Appends nanoseconds as seconds with six decimals, truncated to microseconds as in Zeek.
fn seconds(out: &mut Vec<u8>, ns: i64) {
    let sign = if ns < 0 { "-" } else { "" };
    let us = ns.unsigned_abs() / 1_000;
    write_fmt(out, format_args!("{sign}{}.{:06}", us / 1_000_000, us % 1_000_000));
}

/// Converts seconds to nanoseconds, rounded to whole microseconds (halves to even); saturates.
fn nanos(seconds: f64) -> i64 {
    let whole = seconds.trunc();
    let rest = ((seconds - whole) * 1e6).round_ties_even();
    (whole as i64).saturating_mul(1_000_000).saturating_add(rest as i64).saturating_mul(1_000)
}

fn write_fmt(out: &mut Vec<u8>, args: std::fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = out.write_fmt(args);
}

fn double(out: &mut Vec<u8>, v: f64) {
    if v.is_finite() {
        write_fmt(out, format_args!("{v:?}"));
    } else {
        out.extend_from_slice(b"null");
    }
}

fn value(out: &mut Vec<u8>, event: &Raised<'_>, from: &mut Reader<'_>, ty: &Type, v: &Value<'_>) {
    match (v, ty) {
        (Value::Bool(v), _) => write_fmt(out, format_args!("{v}")),
        (Value::Int(v), _) => write_fmt(out, format_args!("{v}")),
        (Value::Count(v), _) => write_fmt(out, format_args!("{v}")),
        (Value::Double(v), _) => double(out, *v),
        // The earliest time stands for 1601-01-01, the epoch of Windows.
        (Value::Time(v), _) if v.as_nanos() == i64::MIN => out.extend(b"-11644473600.000000"),
        (Value::Time(v), _) => seconds(out, v.as_nanos()),
        (Value::Interval(v), _) => seconds(out, nanos(*v)),
        (Value::String(v), _) => text(out, v),
        (Value::Port(number, proto), _) => port(out, *number, *proto),
        (Value::Addr(v), _) => write_fmt(out, format_args!("\"{v}\"")),
        (Value::Subnet(v), _) => write_fmt(out, format_args!("\"{v}\"")),
        (Value::Enum(v), _) => text(out, v.as_bytes()),
        (Value::Opaque(v, _), _) => write_fmt(out, format_args!("{{\"opaque_type\":\"{v}\"}}")),
        (Value::Vector(n), Type::Vector(element)) | (Value::Set(n), Type::Set(element)) => {
            out.push(b'[');
            for i in 0..*n {
                if i > 0 {
                    out.push(b',');
                }
                write_json_value(out, event, from, element);
            }
            out.push(b']');
        }
        (Value::Vector(n), Type::VectorFromOne(element)) => {
            out.extend_from_slice(if *n > 0 { b"[null" } else { b"[" });
            for _ in 0..*n {
                out.push(b',');
                write_json_value(out, event, from, element);
            }
            out.push(b']');
        }
        (Value::Table(n), Type::Table(key, element)) => {
            out.push(b'{');
            for i in 0..*n {
                if i > 0 {
                    out.push(b',');
                }
                // Keys that are not strings are written as JSON within a string.
                let mut inner = Vec::new();
                write_json_value(&mut inner, event, from, key);
                if inner.first() == Some(&b'"') {
                    out.extend_from_slice(&inner);
                } else {
                    text(out, &inner);
                }
                out.push(b':');
                write_json_value(out, event, from, element);
            }
            out.push(b'}');
        }
        (Value::Record, Type::Record(record)) => fields(out, event, from, record.fields),
        (Value::Connection(i), _) => match event.connection(*i) {
            Some(state) => connection(out, state),
            None => out.extend_from_slice(b"null"),
        },
        (Value::ConnId(id, proto, number), _) => conn_id(out, id, *proto, *number),
        (Value::File(i), _) => match event.file(*i) {
            Some(state) => file(out, state),
            None => out.extend_from_slice(b"null"),
        },
        _ => out.extend_from_slice(b"null"),
    }
}

fn port(out: &mut Vec<u8>, number: u16, proto: Proto) {
    let proto = if proto == Proto::Unknown { "unknown" } else { proto.name() };
    write_fmt(out, format_args!("{{\"port\":{number},\"proto\":\"{proto}\"}}"));
}

fn conn_id(out: &mut Vec<u8>, id: &ConnId, proto: Proto, number: u8) {
    write_fmt(out, format_args!("{{\"orig_h\":\"{}\",\"orig_p\":", id.orig_h));
    port(out, id.orig_p, proto);
    write_fmt(out, format_args!(",\"resp_h\":\"{}\",\"resp_p\":", id.resp_h));
    port(out, id.resp_p, proto);
    write_fmt(out, format_args!(",\"proto\":{number}}}"));
}

fn uid(out: &mut Vec<u8>, v: &Uid) {
    write_fmt(out, format_args!("\"{v}\""));
}

fn connection(out: &mut Vec<u8>, c: &ConnState) {
    out.extend_from_slice(b"{\"id\":");
    conn_id(out, &c.id, c.proto, c.ip_proto);
    for (side, endpoint) in ["orig", "resp"].iter().zip(&c.ends) {
        write_fmt(
            out,
            format_args!(
                ",\"{side}\":{{\"size\":{},\"state\":{},\"num_pkts\":{},\"num_bytes_ip\":{},\"flow_label\":{}",
                endpoint.size,
                endpoint.state,
                endpoint.packets,
                endpoint.ip_bytes,
                endpoint.flow_label
            ),
        );
        if let Some([a, b, c, d, e, f]) = endpoint.l2 {
            write_fmt(
                out,
                format_args!(",\"l2_addr\":\"{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}\""),
            );
        }
        out.push(b'}');
    }
    out.extend_from_slice(b",\"start_time\":");
    seconds(out, c.start.as_nanos());
    out.extend_from_slice(b",\"duration\":");
    seconds(out, c.duration.as_nanos());
    out.extend_from_slice(b",\"service\":[");
    for (i, service) in c.services.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        text(out, service.as_bytes());
    }
    out.extend_from_slice(b"],\"history\":");
    text(out, &c.history);
    out.extend_from_slice(b",\"uid\":");
    uid(out, &c.uid);
    if let Some(vlan) = c.vlan {
        write_fmt(out, format_args!(",\"vlan\":{vlan}"));
    }
    if let Some(vlan) = c.inner_vlan {
        write_fmt(out, format_args!(",\"inner_vlan\":{vlan}"));
    }
    out.push(b'}');
}

fn file(out: &mut Vec<u8>, f: &FileState) {
    out.extend_from_slice(b"{\"id\":");
    uid(out, &f.fuid);
    if let Some(parent) = &f.parent {
        out.extend_from_slice(b",\"parent_id\":");
        uid(out, parent);
    }
    out.extend_from_slice(b",\"source\":");
    text(out, f.source.as_bytes());
    if let Some(is_orig) = f.is_orig {
        write_fmt(out, format_args!(",\"is_orig\":{is_orig}"));
    }
    if !f.conns.is_empty() {
        out.extend_from_slice(b",\"conns\":{");
        for (i, (id, proto)) in f.conns.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            let mut key = Vec::new();
            conn_id(&mut key, id, *proto, protocol_number(*proto));
            text(out, &key);
            out.extend_from_slice(b":{}");
        }
        out.push(b'}');
    }
    out.extend_from_slice(b",\"last_active\":");
    seconds(out, f.last_active.as_nanos());
    write_fmt(out, format_args!(",\"seen_bytes\":{}", f.seen_bytes));
    if let Some(total) = f.total_bytes {
        write_fmt(out, format_args!(",\"total_bytes\":{total}"));
    }
    write_fmt(
        out,
        format_args!(
            ",\"missing_bytes\":{},\"overflow_bytes\":{}",
            f.missing_bytes, f.overflow_bytes
        ),
    );
    out.extend_from_slice(b",\"timeout_interval\":");
    seconds(out, f.timeout.as_nanos());
    if let Some(bof) = &f.bof {
        out.extend_from_slice(b",\"bof_buffer\":");
        text(out, bof);
    }
    out.push(b'}');
}

/// The IP protocol number of a transport; 0 if it is unknown.
fn protocol_number(proto: Proto) -> u8 {
    match proto {
        Proto::Tcp => 6,
        Proto::Udp => 17,
        Proto::Icmp => 1,
        _ => 0,
    }
}
