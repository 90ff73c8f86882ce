//! Equivalents for functions and column names of other SQL engines.

/// Returns the equivalent of a function of another engine.
pub(crate) fn replacement(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    REPLACEMENTS.iter().find(|(names, _)| names.contains(&&*name)).map(|(_, instead)| *instead)
}

/// Returns the columns of Zeek's logs for a name that other tools use.
pub(crate) fn column(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    COLUMNS.iter().find(|(names, _)| names.contains(&&*name)).map(|(_, column)| *column)
}

/// Names in lower case, and Zeek's columns.
const COLUMNS: &[(&[&str], &str)] = &[
    (
        &[
            "src_ip",
            "srcip",
            "source_ip",
            "src",
            "saddr",
            "src_addr",
            "src_host",
            "client_ip",
            "ip_src",
            "source",
        ],
        "id.orig_h",
    ),
    (
        &[
            "dst_ip",
            "dstip",
            "dest_ip",
            "destination_ip",
            "dst",
            "dest",
            "daddr",
            "dst_addr",
            "dst_host",
            "server_ip",
            "ip_dst",
            "destination",
        ],
        "id.resp_h",
    ),
    (&["src_port", "sport", "srcport", "source_port", "client_port"], "id.orig_p"),
    (
        &["dst_port", "dport", "dstport", "dest_port", "destination_port", "server_port", "port"],
        "id.resp_p",
    ),
    (&["timestamp", "time", "_time", "start_time", "datetime", "date"], "ts"),
    (&["protocol", "transport"], "proto (tcp, udp, icmp), or service (dns, http, ...)"),
    (
        &["bytes", "bytes_in", "bytes_out", "bytes_sent", "bytes_received"],
        "orig_bytes and resp_bytes",
    ),
    (&["packets", "pkts"], "orig_pkts and resp_pkts"),
    (
        &["domain", "qname", "dns_query", "hostname"],
        "query in dns, host in http, server_name in ssl",
    ),
    (&["sni"], "server_name in ssl"),
    (&["url"], "host and uri in http"),
    (&["state", "flags"], "conn_state, and history"),
    (&["filename"], "filename in files, name in smb_files"),
];

/// Window functions.
pub(crate) const WINDOW_FUNCTIONS: [&str; 10] = [
    "rank",
    "dense_rank",
    "row_number",
    "lag",
    "lead",
    "ntile",
    "percent_rank",
    "cume_dist",
    "nth_value",
    "first_value",
];

/// Names in lower case, and the equivalent.
const REPLACEMENTS: &[(&[&str], &str)] = &[
    (&["len", "strlen", "size"], "length(text) of a string, array_length(list) of a list"),
    (&["typeof", "pg_typeof", "totypename"], "arrow_typeof(value)"),
    (
        &[
            "quantile",
            "quantile_disc",
            "approx_quantile",
            "percentile",
            "percentile_approx",
            "percentile_disc",
            "approx_percentile",
        ],
        "approx_percentile_cont(value, 0.95), or exactly quantile_cont(value, 0.95)",
    ),
    (&["strftime", "formatdatetime"], "to_char(ts, '%Y-%m-%d %H:%M:%S')"),
    (&["strptime", "str_to_date", "parse_datetime"], "to_timestamp(text, '%Y-%m-%d %H:%M:%S')"),
    (&["epoch_s", "unixepoch", "unix_timestamp", "tounixtimestamp"], "epoch(ts)"),
    (&["epoch_ms"], "epoch(ts) * 1000"),
    (&["epoch_us"], "CAST(ts AS BIGINT)"),
    (&["epoch_ns"], "CAST(ts AS BIGINT) * 1000"),
    (
        &["time_bucket", "time_slice", "tostartofinterval", "tostartofminute", "tostartofhour"],
        "hist(ts, '1m')",
    ),
    (
        &[
            "year",
            "month",
            "day",
            "hour",
            "minute",
            "second",
            "week",
            "weekday",
            "dayofweek",
            "dayofmonth",
            "dayofyear",
        ],
        "date_part('hour', ts), also of 'year', 'month', 'day', 'minute', 'second', 'week', 'dow' and 'doy'",
    ),
    (&["date", "todate"], "CAST(ts AS DATE)"),
    (&["dayname"], "to_char(ts, '%A')"),
    (&["monthname"], "to_char(ts, '%B')"),
    (
        &["date_diff", "datediff", "timediff", "age"],
        "the difference of two times, a number of seconds",
    ),
    (&["date_add", "dateadd", "adddate"], "ts + INTERVAL '1 day'"),
    (&["date_sub", "datesub", "subdate"], "ts - INTERVAL '1 day'"),
    (&["getdate", "sysdate", "localtime"], "now()"),
    (
        &["uniq", "uniqexact", "count_distinct", "dc", "distinct_count"],
        "count(DISTINCT value), or approx_distinct(value)",
    ),
    (&["approx_count_distinct", "ndv"], "approx_distinct(value)"),
    (&["count_if", "countif"], "count(*) FILTER (WHERE condition)"),
    (&["sum_if", "sumif"], "sum(value) FILTER (WHERE condition)"),
    (&["avgif", "avg_if"], "avg(value) FILTER (WHERE condition)"),
    (&["group_concat", "listagg", "string_concat"], "string_agg(text, ',')"),
    (&["list", "collect_list", "grouparray", "json_agg", "json_group_array"], "array_agg(value)"),
    (&["collect_set", "groupuniqarray"], "array_agg(DISTINCT value)"),
    (&["any", "arbitrary", "first"], "first_value(value)"),
    (&["last"], "last_value(value ORDER BY ts)"),
    (&["arg_max", "argmax", "max_by"], "first_value(value ORDER BY key DESC)"),
    (&["arg_min", "argmin", "min_by"], "first_value(value ORDER BY key)"),
    (&["mode", "topk", "top_k", "approx_top_k"], "GROUP BY value ORDER BY count(*) DESC LIMIT 1"),
    (&["stdev"], "stddev(value)"),
    (&["variance"], "var_samp(value)"),
    (&["iff", "if", "iif"], "CASE WHEN condition THEN one ELSE other END"),
    (&["isnull"], "value IS NULL, or coalesce(value, other)"),
    (&["try", "try_cast", "todouble", "tofloat64"], "TRY_CAST(value AS DOUBLE)"),
    (&["tostring", "to_string", "str"], "CAST(value AS VARCHAR)"),
    (&["toint", "toint64", "to_int", "to_number"], "CAST(value AS BIGINT)"),
    (
        &["regexp_matches", "regexp_full_match", "regexp", "rlike", "match"],
        "regexp_like(text, 'pattern')",
    ),
    (&["regexp_extract", "regexp_substr"], "regexp_match(text, '(pattern)')[1]"),
    (&["locate", "charindex", "positioncaseinsensitive"], "strpos(text, part)"),
    (&["startswith", "prefix"], "starts_with(text, part)"),
    (&["endswith", "suffix"], "ends_with(text, part)"),
    (&["ucase"], "upper(text)"),
    (&["lcase"], "lower(text)"),
    (&["mid"], "substr(text, first, count)"),
    (&["split", "string_split", "str_split", "splitbychar"], "string_to_array(text, '.')"),
    (&["explode"], "unnest(list)"),
    (
        &["list_filter", "list_transform", "apply", "filter", "transform"],
        "unnest(list), and a condition on its rows",
    ),
    (&["list_count", "list_len"], "array_length(list)"),
    (&["hex"], "to_hex(number)"),
    (
        &[
            "cidr_match",
            "cidrmatch",
            "cidr_contains",
            "ip_in_range",
            "isipaddressinrange",
            "ip_in_cidr",
            "inet",
            "subnet_contains",
        ],
        "cidr(addr, '10.0.0.0/8')",
    ),
    (
        &["isprivate", "is_rfc1918", "ipv4_is_private", "ip_is_private", "is_private_ip"],
        "is_private(addr)",
    ),
    (
        &[
            "etld_plus_one",
            "registered_domain",
            "registrable_domain",
            "cuttofirstsignificantsubdomain",
        ],
        "domain(name)",
    ),
    (
        &["md5", "sha1", "sha224", "sha256", "sha384", "sha512"],
        "the columns md5, sha1 and sha256 of files, which an analysis makes",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Options;
    use crate::Session;

    #[test]
    fn replacements_exist_and_stand_for_what_does_not() {
        let session = Session::new(&[], Options::default()).unwrap();
        let known: BTreeSet<String> = session.functions().into_iter().collect();
        let names = || REPLACEMENTS.iter().flat_map(|(names, _)| names.iter().copied());
        let existing: Vec<_> = names().filter(|name| known.contains(*name)).collect();
        assert!(existing.is_empty(), "{existing:?}");
        assert_eq!(names().collect::<BTreeSet<_>>().len(), names().count(), "a name twice");
        let mut unknown = BTreeSet::new();
        for (_, instead) in REPLACEMENTS {
            for (at, _) in instead.match_indices('(') {
                let before = &instead[..at];
                let is_word = |c: char| c.is_alphanumeric() || c == '_';
                let called = before.rsplit(|c| !is_word(c)).next().unwrap_or_default();
                let is_syntax = ["", "TRY_CAST", "CAST"].contains(&called);
                if !is_syntax && called != "unnest" && !known.contains(called) {
                    unknown.insert(called);
                }
            }
        }
        assert!(unknown.is_empty(), "{unknown:?}");
        assert_eq!(replacement("TYPEOF"), Some("arrow_typeof(value)"));
        assert_eq!(replacement("nothing"), None);
    }
}
