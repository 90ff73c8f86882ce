//! Scalar functions for network data.

use std::net::IpAddr;
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::ArrayRef;
use arrow_array::BooleanArray;
use arrow_array::Int64Array;
use arrow_array::StringArray;
use arrow_array::TimestampMicrosecondArray;
use arrow_array::builder::Int64Builder;
use arrow_array::builder::ListBuilder;
use arrow_schema::DataType;
use arrow_schema::Field;
use datafusion::common::exec_err;
use datafusion::error::DataFusionError;
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::logical_expr::ScalarFunctionImplementation;
use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::Volatility;
use datafusion::logical_expr::create_udf;
use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Subnet;

use crate::arithmetic::Operation;
use crate::arithmetic::Operator;
use crate::arithmetic::utc;
use crate::session::Shared;

/// A function that gannet adds to those of DataFusion.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Name of the function.
    pub name: &'static str,
    /// Example of a call.
    pub usage: &'static str,
    /// Description of its result.
    pub doc: &'static str,
}

/// All functions that gannet adds.
pub const FUNCTIONS: [Function; 7] = [
    Function {
        name: "cidr",
        usage: "cidr(addr, '10.0.0.0/8')",
        doc: "whether an address is in a network",
    },
    Function {
        name: "is_private",
        usage: "is_private(addr)",
        doc: "whether an address is private, shared, link-local or loopback",
    },
    Function {
        name: "community_id",
        usage: "community_id(id.orig_h, id.orig_p, id.resp_h, id.resp_p, proto)",
        doc: "the Community ID of a connection, version 1, seed 0",
    },
    Function {
        name: "domain",
        usage: "domain(name)",
        doc: "the registrable domain of a host name: example.co.uk of www.example.co.uk",
    },
    Function {
        name: "hist",
        usage: "hist(ts, '1m')",
        doc: "the start of the interval that a time is in: 500ms, 10s, 1m, 6h, 1d, 1w",
    },
    Function {
        name: "epoch",
        usage: "epoch(ts)",
        doc: "the seconds of a time since 1970, or of an interval",
    },
    Function {
        name: "packets",
        usage: "packets(uid)",
        doc: "the numbers of a connection's packets, from the capture's index (gannet index)",
    },
];

/// Returns the functions for registration with DataFusion.
pub(crate) fn all(shared: &Arc<Shared>) -> Vec<ScalarUDF> {
    use DataType::{Boolean, Int64, Utf8};
    let utc = utc();
    let numbers = DataType::List(Arc::new(Field::new("item", Int64, true)));
    let fixed =
        |name, inputs: &[DataType], output: DataType, run: fn(&[ArrayRef]) -> Result<ArrayRef>| {
            create_udf(name, inputs.to_vec(), output, Volatility::Immutable, on_arrays(run))
        };
    let shared = Arc::clone(shared);
    let packets = on_arrays(move |arrays: &[ArrayRef]| packets(arrays, &shared));
    vec![
        fixed("cidr", &[Utf8, Utf8], Boolean, cidr),
        fixed("is_private", &[Utf8], Boolean, is_private),
        fixed("community_id", &[Utf8, Int64, Utf8, Int64, Utf8], Utf8, community_id),
        fixed("domain", &[Utf8], Utf8, domain),
        fixed("hist", &[utc.clone(), Utf8], utc, hist),
        ScalarUDF::from(Operator::new(Operation::Epoch)),
        create_udf("packets", vec![Utf8], numbers, Volatility::Stable, packets),
    ]
}

/// Wraps a function of arrays as a DataFusion function; with constant arguments it returns a constant.
fn on_arrays(
    run: impl Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync + 'static,
) -> ScalarFunctionImplementation {
    Arc::new(move |values: &[ColumnarValue]| {
        let is_constant = values.iter().all(|v| matches!(v, ColumnarValue::Scalar(_)));
        let result = run(&ColumnarValue::values_to_arrays(values)?)?;
        if is_constant {
            return Ok(ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(
                &result, 0,
            )?));
        }
        Ok(ColumnarValue::Array(result))
    })
}

pub(crate) fn as_array<T: 'static>(arrays: &[ArrayRef], at: usize) -> Result<&T> {
    let array = arrays.get(at).and_then(|array| array.as_any().downcast_ref());
    array.ok_or_else(|| DataFusionError::Internal("an argument of another type".to_owned()))
}

fn cidr(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let (addrs, nets): (&StringArray, &StringArray) = (as_array(arrays, 0)?, as_array(arrays, 1)?);
    let mut last: Option<(&str, Subnet)> = None;
    let mut results = Vec::with_capacity(addrs.len());
    for (addr, net) in addrs.iter().zip(nets) {
        let (Some(addr), Some(net)) = (addr, net) else {
            results.push(None);
            continue;
        };
        let subnet = match &last {
            Some((text, subnet)) if *text == net => *subnet,
            _ => match subnet(net) {
                Some(subnet) => subnet,
                None => {
                    return exec_err!(
                        "cidr: '{net}' is not a network; write it like 10.0.0.0/8 or 2001:db8::/32"
                    );
                }
            },
        };
        last = Some((net, subnet));
        results.push(Some(addr.parse::<Addr>().is_ok_and(|addr| subnet.contains(addr))));
    }
    Ok(Arc::new(BooleanArray::from(results)))
}

/// Parses a subnet, or an address as the subnet of this one host.
fn subnet(text: &str) -> Option<Subnet> {
    if let Ok(subnet) = text.parse() {
        return Some(subnet);
    }
    let length = if text.parse::<Addr>().ok()?.is_v4() { 32 } else { 128 };
    format!("{text}/{length}").parse().ok()
}

fn is_private(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let addrs: &StringArray = as_array(arrays, 0)?;
    let results = addrs.iter().map(|addr| addr.map(|addr| addr.parse().is_ok_and(is_private_addr)));
    Ok(Arc::new(results.collect::<BooleanArray>()))
}

/// Whether an address is not routed globally: private (RFC 1918), shared (RFC 6598), link-local (RFC 3927, 4291),
/// unique local (RFC 4193), or loopback.
fn is_private_addr(addr: IpAddr) -> bool {
    match addr {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            let is_shared = a == 100 && (64..128).contains(&b);
            v4.is_private() || v4.is_loopback() || v4.is_link_local() || is_shared
        }
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => is_private_addr(IpAddr::V4(v4)),
            None => v6.is_unique_local() || v6.is_unicast_link_local() || v6.is_loopback(),
        },
    }
}

fn community_id(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let (from, to): (&StringArray, &StringArray) = (as_array(arrays, 0)?, as_array(arrays, 2)?);
    let (from_port, to_port): (&Int64Array, &Int64Array) =
        (as_array(arrays, 1)?, as_array(arrays, 3)?);
    let protos: &StringArray = as_array(arrays, 4)?;
    let of = |row: usize| {
        if arrays.iter().any(|array| array.is_null(row)) {
            return None;
        }
        let addr = |array: &StringArray| array.value(row).parse::<Addr>().ok();
        let port = |array: &Int64Array| u16::try_from(array.value(row)).ok();
        let id = ConnId {
            orig_h: addr(from)?,
            orig_p: port(from_port)?,
            resp_h: addr(to)?,
            resp_p: port(to_port)?,
        };
        gannet_engine::community_id_of(&id, protos.value(row), 0)
    };
    Ok(Arc::new((0..from.len()).map(of).collect::<StringArray>()))
}

fn domain(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let names: &StringArray = as_array(arrays, 0)?;
    let of = |name: Option<&str>| {
        let name = name?.trim_end_matches('.');
        if name.parse::<IpAddr>().is_ok() {
            return None;
        }
        let lower = name.to_ascii_lowercase();
        psl::domain_str(&lower).map(str::to_owned)
    };
    Ok(Arc::new(names.iter().map(of).collect::<StringArray>()))
}

fn hist(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let times: &TimestampMicrosecondArray = as_array(arrays, 0)?;
    let widths: &StringArray = as_array(arrays, 1)?;
    let mut last: Option<(&str, Interval)> = None;
    let mut starts = Vec::with_capacity(times.len());
    for (time, width) in times.iter().zip(widths) {
        let (Some(time), Some(width)) = (time, width) else {
            starts.push(None);
            continue;
        };
        let interval = match last {
            Some((text, interval)) if text == width => interval,
            _ => match interval(width) {
                Some(interval) => interval,
                None => {
                    return exec_err!(
                        "hist: '{width}' is not an interval; write it like 500ms, 10s, 1m, 6h, 1d or 1w"
                    );
                }
            },
        };
        last = Some((width, interval));
        starts.push(interval.start(time));
    }
    Ok(Arc::new(TimestampMicrosecondArray::from(starts).with_timezone("UTC")))
}

/// Consecutive intervals of equal width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval {
    /// Width of each interval in microseconds.
    width: i64,
    /// Start of one of the intervals, in microseconds since 1970.
    origin: i64,
}

impl Interval {
    /// Returns the start of the interval that contains a time; `None` if it cannot be represented.
    fn start(self, time: i64) -> Option<i64> {
        let from_origin = i128::from(time) - i128::from(self.origin);
        i64::try_from(i128::from(time) - from_origin.rem_euclid(i128::from(self.width))).ok()
    }
}

/// Monday, 5 January 1970 in microseconds: weeks begin on Mondays (ISO 8601), as for `date_trunc('week', ts)`.
const MONDAY: i64 = 4 * 86_400_000_000;

/// Parses a width: a number and a unit.
fn interval(text: &str) -> Option<Interval> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let unit: i64 = match unit.trim() {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" | "min" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        "w" => 7 * 86_400_000_000,
        _ => return None,
    };
    let width = number.parse::<i64>().ok()?.checked_mul(unit)?;
    let origin = if text.ends_with('w') { MONDAY } else { 0 };
    (width > 0).then_some(Interval { width, origin })
}

/// Returns the packet numbers of each uid, from the first index that contains it, in the order of the captures.
fn packets(arrays: &[ArrayRef], shared: &Shared) -> Result<ArrayRef> {
    let uids: &StringArray = as_array(arrays, 0)?;
    let to_error =
        |error: gannet_index::Error| DataFusionError::Execution(format!("packets: {error}"));
    let captures = shared.captures();
    if captures.is_empty() {
        return exec_err!("packets: no capture is given");
    }
    let mut indexes = Vec::new();
    for capture in &captures {
        let index = gannet_index::Index::open(capture).map_err(to_error)?;
        index.check(gannet_index::Analysis::of(&shared.options.analysis)).map_err(to_error)?;
        indexes.push(index);
    }
    let mut lists = ListBuilder::new(Int64Builder::new());
    for uid in uids {
        let mut packets = None;
        if let Some(uid) = uid {
            for index in &mut indexes {
                if packets.is_none() {
                    packets = index.packets(uid.as_bytes()).map_err(to_error)?;
                }
            }
        }
        match packets {
            None => lists.append(false),
            Some(numbers) => {
                numbers.iter().for_each(|n| lists.values().append_value(*n as i64));
                lists.append(true);
            }
        }
    }
    Ok(Arc::new(lists.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(values: &[&str]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    fn bools(array: &ArrayRef) -> Vec<Option<bool>> {
        array.as_any().downcast_ref::<BooleanArray>().unwrap().iter().collect()
    }

    #[test]
    fn addresses_are_in_networks() {
        let addrs = strings(&["10.1.2.3", "11.0.0.0", "2001:db8::1", "not one", "::ffff:10.0.0.1"]);
        let nets =
            strings(&["10.0.0.0/8", "10.0.0.0/8", "2001:db8::/32", "10.0.0.0/8", "10.0.0.0/8"]);
        let results = bools(&cidr(&[addrs, nets]).unwrap());
        assert_eq!(results[..4], [Some(true), Some(false), Some(true), Some(false)]);
        assert!(cidr(&[strings(&["10.0.0.1"]), strings(&["10/33"])]).is_err());
        // An address without a prefix length is a network of one host.
        let hosts = strings(&["10.0.0.1", "2001:db8::1"]);
        let results = bools(&cidr(&[strings(&["10.0.0.1", "2001:db8::2"]), hosts]).unwrap());
        assert_eq!(results, [Some(true), Some(false)]);
    }

    #[test]
    fn private_addresses() {
        let addrs = [
            ("10.0.0.1", true),
            ("172.32.0.1", false),
            ("192.168.3.4", true),
            ("100.64.0.1", true),
            ("100.128.0.1", false),
            ("169.254.1.1", true),
            ("127.0.0.1", true),
            ("8.8.8.8", false),
            ("fd00::1", true),
            ("fe80::1", true),
            ("::1", true),
            ("2001:db8::1", false),
            ("", false),
        ];
        let names: Vec<_> = addrs.iter().map(|(addr, _)| *addr).collect();
        let results = bools(&is_private(&[strings(&names)]).unwrap());
        for ((addr, is), result) in addrs.iter().zip(results) {
            assert_eq!(result, Some(*is), "{addr}");
        }
    }

    #[test]
    fn domains_end_before_public_suffixes() {
        let names = [
            ("www.example.co.uk", Some("example.co.uk")),
            ("A.B.Example.COM.", Some("example.com")),
            ("com", None),
            ("co.uk", None),
            ("192.0.2.1", None),
            ("", None),
            ("localhost", None),
        ];
        for (name, expected) in names {
            let results = domain(&[strings(&[name])]).unwrap();
            let results: &StringArray = results.as_any().downcast_ref().unwrap();
            assert_eq!(results.iter().next().flatten(), expected, "{name}");
        }
    }

    #[test]
    fn intervals_are_numbers_with_a_unit() {
        let width = |text| interval(text).map(|interval| interval.width);
        assert_eq!(width("1m"), Some(60_000_000));
        assert_eq!(width("500 ms"), Some(500_000));
        assert_eq!(width("1w"), Some(604_800_000_000));
        for wrong in ["", "m", "0s", "1", "1y", "-1s", "99999999999999999w"] {
            assert_eq!(interval(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn weeks_begin_on_mondays_and_no_time_overflows() {
        const DAY: i64 = 86_400_000_000;
        let week = interval("1w").unwrap();
        // The first Thursday and Sunday of 1970, and the Monday after them.
        assert_eq!(
            [0, 3, 4].map(|day| week.start(day * DAY)),
            [-3, -3, 4].map(|day| Some(day * DAY))
        );
        assert_eq!(week.start(i64::MIN), None);
        assert!(week.start(i64::MAX).is_some());
    }

    #[test]
    fn times_before_1970_fall_into_their_interval() {
        let times = TimestampMicrosecondArray::from(vec![-1, 0, 59_999_999, 60_000_000]);
        let times: ArrayRef = Arc::new(times.with_timezone("UTC"));
        let results = hist(&[times, strings(&["1m"; 4])]).unwrap();
        let results: &TimestampMicrosecondArray = results.as_any().downcast_ref().unwrap();
        assert_eq!(results.values()[..], [-60_000_000, 0, 0, 60_000_000]);
    }
}
