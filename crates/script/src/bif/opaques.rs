//! Opaque values: digests, bloom filters, counters, most frequent values, randomness, globs.

use super::strings::bytes;
use super::{Table, arg};
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::ids::TypeId;
use crate::literal::Protocol;
use crate::support::opaque::{
    Algorithm, BloomFilter, Cardinality, Digest, Entropy, Globs, Randomness, TopK, bloom, fnv1a32,
    fnv1a64, hmac_md5, hmac_sha256,
};
use crate::types::Tag;
use crate::value::binary::{MAX_DEPTH, binary};
use crate::value::order;
use crate::value::{OpaqueValue, Record, Value, Vector};
use crate::vm::Vm;

type Result<T> = std::result::Result<T, Stop>;

macro_rules! digests {
    ($($algorithm:ident $hash:literal $init:literal $update:literal $finish:literal;)*) => {
        /// The functions of digests.
        pub(super) const DIGESTS: Table = &[$(
            ($hash, |vm, a| {
                let mut digest = Digest::new(Algorithm::$algorithm);
                digest.update(&digested(vm, a));
                Ok(Value::string(digest.finish_hex()))
            }),
            ($init, |vm, _| opaque(vm, Some(Digest::new(Algorithm::$algorithm)))),
            ($update, |_, a| {
                let updated = with(a, 0, |digest: &mut Option<Digest>| match digest {
                    Some(digest) => {
                        digest.update(bytes(a, 1));
                        true
                    }
                    None => false,
                });
                Ok(Value::Bool(updated.unwrap_or(false)))
            }),
            ($finish, |_, a| {
                let digest = with(a, 0, |digest: &mut Option<Digest>| digest.take()).flatten();
                Ok(digest.map_or(Value::string(""), |digest| Value::string(digest.finish_hex())))
            }),
        )*];
    };
}

digests! {
    Md5 "md5_hash" "md5_hash_init" "md5_hash_update" "md5_hash_finish";
    Sha1 "sha1_hash" "sha1_hash_init" "sha1_hash_update" "sha1_hash_finish";
    Sha224 "sha224_hash" "sha224_hash_init" "sha224_hash_update" "sha224_hash_finish";
    Sha256 "sha256_hash" "sha256_hash_init" "sha256_hash_update" "sha256_hash_finish";
    Sha384 "sha384_hash" "sha384_hash_init" "sha384_hash_update" "sha384_hash_finish";
    Sha512 "sha512_hash" "sha512_hash_init" "sha512_hash_update" "sha512_hash_finish";
}

/// The functions of this file.
pub(super) const TABLE: Table = &[
    ("md5_hmac", |vm, a| {
        let data = digested(vm, a);
        let digest = hmac_md5(&data, &vm.m.state.hashes);
        Ok(Value::string_owned(crate::support::text::to_hex(&digest)))
    }),
    ("sha256_hmac", |vm, a| {
        let data = digested(vm, a);
        let digest = hmac_sha256(&data, &vm.m.state.hashes);
        Ok(Value::string_owned(crate::support::text::to_hex(&digest)))
    }),
    ("fnv1a32", |vm, a| {
        let data = digested(vm, a);
        Ok(Value::Count(u64::from(fnv1a32(&data))))
    }),
    ("fnv1a64", |vm, a| {
        let data = digested(vm, a);
        Ok(Value::Count(fnv1a64(&data)))
    }),
    ("community_id_v1", community_id),
    ("entropy_test_init", |vm, _| opaque(vm, Entropy::default())),
    ("entropy_test_add", |_, a| {
        Ok(Value::Bool(with(a, 0, |entropy: &mut Entropy| entropy.add(bytes(a, 1))).is_some()))
    }),
    ("entropy_test_finish", |vm, a| {
        let result = with(a, 0, |entropy: &mut Entropy| entropy.finish())
            .unwrap_or_else(|| Entropy::default().finish());
        Ok(randomness(vm.result_type(), &result))
    }),
    ("find_entropy", |vm, a| {
        let mut entropy = Entropy::default();
        entropy.add(bytes(a, 0));
        let result = entropy.finish();
        Ok(randomness(vm.result_type(), &result))
    }),
    ("paraglob_init", |vm, a| {
        let globs = arg(a, 0).vector().filter(|vector| {
            let element = vm.p.types.element(vector.ty());
            element.is_some_and(|ty| matches!(vm.p.types.tag(ty), Tag::String | Tag::Void))
        });
        let Some(globs) = globs else {
            let text = "paraglob requires a vector of strings for initialization.";
            vm.report(Severity::Error, text);
            return Ok(Value::Unset);
        };
        let texts: Vec<Vec<u8>> =
            globs.items().iter().map(|item| item.str_bytes().to_vec()).collect();
        opaque(vm, Paraglob { globs: Globs::new(&texts), texts })
    }),
    ("paraglob_match", |vm, a| {
        let found = with(a, 0, |glob: &mut Paraglob| {
            glob.globs.matching(bytes(a, 1)).into_iter().map(Value::string).collect::<Vec<_>>()
        });
        Ok(Value::Vector(Vector::new(vm.result_type(), found.unwrap_or_default())))
    }),
    ("paraglob_equals", |_, a| {
        let one = with(a, 0, |glob: &mut Paraglob| sorted(&glob.texts));
        let other = with(a, 1, |glob: &mut Paraglob| sorted(&glob.texts));
        Ok(Value::Bool(one == other))
    }),
    ("bloomfilter_basic_init", |vm, a| {
        let (fp, capacity) = (arg(a, 0).double(), arg(a, 1).count());
        if !(0.0..=1.0).contains(&fp) {
            vm.report(Severity::Error, "false-positive rate must take value between 0 and 1");
            return Ok(Value::Unset);
        }
        let seed = bloom_seed(vm, bytes(a, 2));
        bloom_value(vm, BloomFilter::basic(fp, capacity, seed).map_err(|error| error.0))
    }),
    ("bloomfilter_basic_init2", |vm, a| {
        let seed = bloom_seed(vm, bytes(a, 2));
        let filter = BloomFilter::basic_of_cells(arg(a, 0).count(), arg(a, 1).count(), seed);
        bloom_value(vm, filter.map_err(|error| error.0))
    }),
    ("bloomfilter_counting_init", |vm, a| {
        let seed = bloom_seed(vm, bytes(a, 3));
        let [k, cells, max] = [0, 1, 2].map(|index| arg(a, index).count());
        bloom_value(vm, BloomFilter::counting(k, cells, max, seed).map_err(|error| error.0))
    }),
    ("bloomfilter_add", |vm, a| {
        if typed(vm, a, "incompatible Bloom filter types") {
            with(a, 0, |filter: &mut Typed<BloomFilter>| filter.data.add(&order::bytes(arg(a, 1))));
        }
        Ok(Value::Unset)
    }),
    ("bloomfilter_lookup", |vm, a| {
        if !known(a) {
            return Ok(Value::Count(0));
        }
        if !typed(vm, a, "incompatible Bloom filter types") {
            return Ok(Value::Count(0));
        }
        let count = with(a, 0, |filter: &mut Typed<BloomFilter>| {
            filter.data.count(&order::bytes(arg(a, 1)))
        });
        Ok(Value::Count(count.unwrap_or(0)))
    }),
    ("bloomfilter_decrement", |vm, a| {
        if !typed(vm, a, "incompatible Bloom filter types") {
            return Ok(Value::Bool(false));
        }
        let done = with(a, 0, |filter: &mut Typed<BloomFilter>| {
            filter.data.decrement(&order::bytes(arg(a, 1)))
        });
        Ok(Value::Bool(done.unwrap_or(false)))
    }),
    ("bloomfilter_clear", |_, a| {
        with(a, 0, |filter: &mut Typed<BloomFilter>| filter.data.clear());
        Ok(Value::Unset)
    }),
    ("bloomfilter_internal_state", |_, a| {
        let state = with(a, 0, |filter: &mut Typed<BloomFilter>| filter.data.internal_state());
        Ok(Value::string(state.unwrap_or(0).to_string()))
    }),
    ("bloomfilter_merge", |vm, a| bloom_join(vm, a, BloomFilter::merge)),
    ("bloomfilter_intersect", |vm, a| bloom_join(vm, a, BloomFilter::intersect)),
    ("hll_cardinality_init", |vm, a| {
        match Cardinality::new(arg(a, 0).double(), arg(a, 1).double()) {
            Some(counter) => opaque(vm, Typed { ty: None, data: counter }),
            None => {
                vm.report(Severity::Error, "bad error or confidence of a cardinality counter");
                Ok(Value::Unset)
            }
        }
    }),
    ("hll_cardinality_add", |vm, a| {
        let own = vm.p.types.tag(arg(a, 1).ty());
        let hash = vm.m.state.hashes.key(order::bytes(arg(a, 1)));
        let added = with(a, 0, |counter: &mut Typed<Cardinality>| {
            if counter.ty.is_some_and(|ty| ty != own) {
                return false;
            }
            counter.ty = Some(own);
            counter.data.add(hash);
            true
        });
        if added != Some(true) {
            vm.report(Severity::Error, "incompatible HLL data type");
        }
        Ok(Value::Bool(added.unwrap_or(false)))
    }),
    ("hll_cardinality_estimate", |_, a| {
        let estimate = with(a, 0, |counter: &mut Typed<Cardinality>| counter.data.estimate());
        Ok(Value::Double(estimate.unwrap_or(0.0)))
    }),
    ("hll_cardinality_copy", |vm, a| {
        match with(a, 0, |counter: &mut Typed<Cardinality>| counter.clone()) {
            Some(copy) => opaque(vm, copy),
            None => Ok(Value::Unset),
        }
    }),
    ("hll_cardinality_merge_into", |vm, a| {
        let Some(other) = with(a, 1, |counter: &mut Typed<Cardinality>| counter.clone()) else {
            return Ok(Value::Bool(false));
        };
        let merged = with(a, 0, |counter: &mut Typed<Cardinality>| {
            if counter.ty.is_some() && other.ty.is_some() && counter.ty != other.ty {
                return Err("incompatible HLL types");
            }
            counter.ty = counter.ty.or(other.ty);
            if counter.data.merge(&other.data) {
                Ok(())
            } else {
                Err("Cardinality counters with different parameters cannot be merged")
            }
        });
        match merged {
            Some(Ok(())) => Ok(Value::Bool(true)),
            Some(Err(message)) => {
                vm.report(Severity::Error, message);
                Ok(Value::Bool(false))
            }
            None => Ok(Value::Bool(false)),
        }
    }),
    ("topk_init", |vm, a| {
        let top = Top { ty: None, data: TopK::new(arg(a, 0).count()) };
        opaque(vm, top)
    }),
    ("topk_add", |vm, a| {
        let value = arg(a, 1).clone();
        let own = vm.p.types.tag(value.ty());
        let added = with(a, 0, |top: &mut Top| {
            if top.ty.is_some_and(|ty| ty != own) {
                return false;
            }
            top.ty = Some(own);
            top.data.add(&order::bytes(&value), value.clone());
            true
        });
        if added == Some(false) {
            vm.report(
                Severity::Error,
                "Trying to add element to topk with differing type from other elements",
            );
        }
        Ok(Value::Unset)
    }),
    ("topk_get_top", |vm, a| {
        let items = with(a, 0, |top: &mut Top| top.data.top(arg(a, 1).count())).unwrap_or_default();
        if with(a, 0, |top: &mut Top| top.data.is_empty()) == Some(true) {
            vm.report(Severity::Error, "Cannot return topk of empty");
            return Ok(Value::Unset);
        }
        let ty = match items.first() {
            Some(first) => {
                let element = first.ty();
                vm.vector_of(element)
            }
            None => vm.result_type(),
        };
        Ok(Value::Vector(Vector::new(ty, items)))
    }),
    ("topk_count", |vm, a| {
        let key = order::bytes(arg(a, 1));
        let count = with(a, 0, |top: &mut Top| top.data.count(&key)).flatten();
        if count.is_none() {
            vm.report(Severity::Error, "GetCount for element that is not in top-k");
        }
        Ok(Value::Count(count.unwrap_or(0)))
    }),
    ("topk_epsilon", |vm, a| {
        let key = order::bytes(arg(a, 1));
        let epsilon = with(a, 0, |top: &mut Top| top.data.epsilon(&key)).flatten();
        if epsilon.is_none() {
            vm.report(Severity::Error, "GetEpsilon for element that is not in top-k");
        }
        Ok(Value::Count(epsilon.unwrap_or(0)))
    }),
    ("topk_size", |_, a| {
        Ok(Value::Count(with(a, 0, |top: &mut Top| top.data.size()).unwrap_or(0)))
    }),
    ("topk_sum", |vm, a| {
        let (sum, pruned) = with(a, 0, |top: &mut Top| top.data.sum()).unwrap_or_default();
        if pruned {
            vm.report(
                Severity::Warning,
                "TopkVal::GetSum() was used on a pruned data structure. Result values do not represent total element count",
            );
        }
        Ok(Value::Count(sum))
    }),
    ("topk_merge", |vm, a| topk_merge(vm, a, false)),
    ("topk_merge_prune", |vm, a| topk_merge(vm, a, true)),
];

/// IP protocol number of SCTP.
const SCTP: u8 = 132;

/// The protocol number in a Community ID; `proto` is the field of `conn_id`.
fn community_protocol(protocol: Protocol, six: bool, proto: u64) -> Option<u8> {
    /// Zeek's `UNKNOWN_IP_PROTO`.
    const UNKNOWN: u16 = 65535;
    Some(match protocol {
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
        Protocol::Icmp if six => 58,
        Protocol::Icmp => 1,
        Protocol::Unknown if proto as u16 == UNKNOWN => return None,
        Protocol::Unknown => proto as u8,
    })
}

/// Whether an ICMP message type has a reply of another type, or is such a reply.
fn has_reply(six: bool, message: u16) -> bool {
    let types: &[u16] = if six {
        &[128, 129, 130, 131, 133, 134, 135, 136, 139, 140, 144, 145]
    } else {
        &[0, 8, 9, 10, 13, 14, 15, 16, 17, 18]
    };
    types.contains(&message)
}

/// The Community ID, version 1, of a connection's addresses and ports.
fn community_id(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let cid = arg(args, 0);
    let part = |name: &str| super::log::field(vm, cid, name);
    let (orig_h, resp_h) = (part("orig_h"), part("resp_h"));
    let (orig_p, resp_p) = (part("orig_p").as_port(), part("resp_p").as_port());
    let address = |value: &Value| match value {
        Value::Addr4(bytes) => bytes.to_vec(),
        other => other.addr_bytes().unwrap_or_default().to_vec(),
    };
    let (mut source, mut target) = (address(&orig_h), address(&resp_h));
    let (mut from, mut to) = (orig_p.number, resp_p.number);
    let six = source.len() == 16;
    let Some(number) = community_protocol(orig_p.protocol, six, part("proto").count()) else {
        vm.builtin_error_with("CommunityID: unknown transport layer", cid);
        return Ok(Value::string(""));
    };
    let is_one_way = orig_p.protocol == Protocol::Icmp && !has_reply(six, from);
    // As in Zeek, ports of one host are compared as a little-endian processor reads them from a packet.
    let order = |port: u16| port.swap_bytes();
    if !is_one_way && (&target, order(to)) < (&source, order(from)) {
        std::mem::swap(&mut source, &mut target);
        std::mem::swap(&mut from, &mut to);
    }
    let mut digest = Digest::new(Algorithm::Sha1);
    digest.update(&(arg(args, 1).count() as u16).to_be_bytes());
    digest.update(&source);
    digest.update(&target);
    digest.update(&[number, 0]);
    if orig_p.protocol != Protocol::Unknown || number == SCTP {
        digest.update(&from.to_be_bytes());
        digest.update(&to.to_be_bytes());
    }
    let bytes = digest.finish();
    let text = if arg(args, 2).truth() {
        crate::support::text::base64::encode(&bytes, None)
    } else {
        crate::support::text::to_hex(&bytes)
    };
    Ok(Value::string_owned([b"1:".as_slice(), &text].concat()))
}

/// A set of glob patterns.
#[derive(Clone)]
struct Paraglob {
    globs: Globs,
    texts: Vec<Vec<u8>>,
}

/// A structure that accepts values of one type.
#[derive(Clone)]
struct Typed<T> {
    ty: Option<Tag>,
    data: T,
}

/// The most frequent values, of one type.
struct Top {
    ty: Option<Tag>,
    data: TopK<Value>,
}

impl Clone for Top {
    fn clone(&self) -> Self {
        Self { ty: self.ty, data: self.data.copy() }
    }
}

fn opaque<T: Clone + 'static>(vm: &Vm<'_>, data: T) -> Result<Value> {
    Ok(Value::Opaque(OpaqueValue::new(vm.result_type(), data)))
}

fn with<T: 'static, R>(args: &[Value], index: usize, f: impl FnOnce(&mut T) -> R) -> Option<R> {
    arg(args, index).opaque()?.with(f)
}

/// The input of a digest: strings as they are, other values after the number of their type.
fn digested(vm: &mut Vm<'_>, args: &[Value]) -> Vec<u8> {
    let mut data = Vec::new();
    let mut is_whole = true;
    for value in args {
        match value.bytes() {
            Some(text) => data.extend_from_slice(text),
            None => {
                let (form, is_cut) = binary(vm.p, value);
                data.extend(form);
                is_whole &= !is_cut;
            }
        }
    }
    if !is_whole {
        let text = format!("value nested deeper than {MAX_DEPTH}: its digest leaves out the rest");
        vm.report(Severity::Warning, text);
    }
    data
}

/// The results of a test as a record of the type `entropy_test_result`.
pub(crate) fn randomness(ty: TypeId, result: &Randomness) -> Value {
    let fields = [
        result.entropy,
        result.chi_square,
        result.mean,
        result.monte_carlo_pi,
        result.serial_correlation,
    ];
    Value::Record(Record::new(ty, fields.map(Value::Double).to_vec()))
}

fn sorted(texts: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut texts = texts.to_vec();
    texts.sort();
    texts
}

fn bloom_seed(vm: &Vm<'_>, name: &[u8]) -> bloom::Seed {
    let global = vm.global_named("global_hash_seed");
    bloom::seed(name, global.str_bytes(), vm.m.state.first_seed)
}

fn bloom_value(
    vm: &mut Vm<'_>,
    filter: std::result::Result<BloomFilter, &'static str>,
) -> Result<Value> {
    match filter {
        Ok(filter) => opaque(vm, Typed { ty: None, data: filter }),
        Err(message) => {
            vm.report(Severity::Error, message);
            Ok(Value::Unset)
        }
    }
}

/// Whether any value was added to a filter.
fn known(args: &[Value]) -> bool {
    with(args, 0, |filter: &mut Typed<BloomFilter>| filter.ty.is_some()).unwrap_or(false)
}

/// Whether a value has the type of the filter; an empty filter accepts any type.
fn typed(vm: &mut Vm<'_>, args: &[Value], message: &str) -> bool {
    let own = vm.p.types.tag(arg(args, 1).ty());
    let good = with(args, 0, |filter: &mut Typed<BloomFilter>| {
        if filter.ty.is_none() {
            filter.ty = Some(own);
        }
        filter.ty == Some(own)
    })
    .unwrap_or(false);
    if !good {
        vm.report(Severity::Error, message);
    }
    good
}

fn bloom_join(
    vm: &mut Vm<'_>,
    args: &[Value],
    join: fn(&BloomFilter, &BloomFilter) -> std::result::Result<BloomFilter, String>,
) -> Result<Value> {
    let one = with(args, 0, |filter: &mut Typed<BloomFilter>| filter.clone());
    let other = with(args, 1, |filter: &mut Typed<BloomFilter>| filter.clone());
    let (Some(one), Some(other)) = (one, other) else { return Ok(Value::Unset) };
    if one.ty.is_some() && other.ty.is_some() && one.ty != other.ty {
        vm.report(Severity::Error, "incompatible Bloom filter types");
        return Ok(Value::Unset);
    }
    match join(&one.data, &other.data) {
        Ok(data) => opaque(vm, Typed { ty: one.ty.or(other.ty), data }),
        Err(message) => {
            let what = if message.contains("intersect") { "intersect" } else { "merge" };
            let unlike = message.starts_with("incompatible hashers");
            vm.report(Severity::Error, message);
            if unlike {
                vm.report(Severity::Error, format!("failed to {what} Bloom filter"));
            }
            Ok(Value::Unset)
        }
    }
}

fn topk_merge(vm: &mut Vm<'_>, args: &[Value], prune: bool) -> Result<Value> {
    let Some(other) = with(args, 1, |top: &mut Top| top.clone()) else {
        return Ok(Value::Unset);
    };
    let merged = with(args, 0, |top: &mut Top| {
        if top.ty.is_some() && other.ty.is_some() && top.ty != other.ty {
            return false;
        }
        top.ty = top.ty.or(other.ty);
        top.data.merge(&other.data, prune);
        true
    });
    if merged == Some(false) {
        vm.report(Severity::Error, "Cannot merge top-k elements of differing types.");
    }
    Ok(Value::Unset)
}
