//! Parses limits such as `connections=1M` and `2G`.

use gannet_engine::Limits;

/// Parses a number with an optional fraction and a suffix K, M, G or T: powers of 1,024 for `bytes`, of 1,000 for
/// counts.
fn number(text: &str, bytes: bool) -> Result<u64, String> {
    let bad = || {
        format!(
            "'{text}' is not a {}",
            if bytes { "size, like 200M or 2G" } else { "number, like 500 or 1M" }
        )
    };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let base: f64 = if bytes { 1024.0 } else { 1000.0 };
    let unit = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 1.0,
        "B" if bytes => 1.0,
        "K" | "KB" | "KIB" => base,
        "M" | "MB" | "MIB" => base.powi(2),
        "G" | "GB" | "GIB" => base.powi(3),
        "T" | "TB" | "TIB" => base.powi(4),
        _ => return Err(bad()),
    };
    let plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let value: f64 = digits.parse().map_err(|_| bad())?;
    if !plain || !(value * unit).is_finite() || value * unit >= 9e18 {
        return Err(bad());
    }
    Ok((value * unit) as u64)
}

/// Parses the size of `--max-state`, which sets the limit `state`.
pub(crate) fn state(text: &str) -> Result<u64, String> {
    let bytes = size(text)?;
    match Limits::all().find(|limit| limit.name == "state" && !limit.accepts(bytes)) {
        Some(limit) => {
            Err(format!("the memory of an analysis must be {}, not {text}", limit.range()))
        }
        None => Ok(bytes),
    }
}

/// Parses a size in bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    number(text, true)
}

/// Parses a size of at least one byte.
pub(crate) fn size_above_zero(text: &str) -> Result<u64, String> {
    size(text).and_then(|size| {
        if size > 0 { Ok(size) } else { Err("the size must be at least 1 byte".into()) }
    })
}

/// Parses `NAME=VALUE` and checks the name and the value.
pub(crate) fn limit(text: &str) -> Result<(String, u64), String> {
    let names = || {
        let names: Vec<_> = Limits::all().map(|l| l.name).collect();
        format!("limits are {}", names.join(", "))
    };
    let (name, value) =
        text.split_once('=').ok_or_else(|| format!("expected NAME=VALUE; {}", names()))?;
    let limit = Limits::all().find(|l| l.name == name);
    let limit = limit.ok_or_else(|| format!("no limit is named '{name}'; {}", names()))?;
    let count = if value == "none" { u64::MAX } else { number(value, limit.bytes)? };
    if !limit.accepts(count) {
        return Err(format!("{name} must be {}, not {value}", limit.range()));
    }
    Ok((name.to_owned(), count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts() {
        assert_eq!(size("200M"), Ok(200 << 20));
        assert_eq!(size("1.5g"), Ok(3 << 29));
        assert_eq!(size("123"), Ok(123));
        assert_eq!(limit("connections=1M"), Ok(("connections".into(), 1_000_000)));
        assert_eq!(limit("fragments=1KiB"), Ok(("fragments".into(), 1024)));
        assert_eq!(limit("state=none"), Ok(("state".into(), u64::MAX)));
        for bad in ["", "M", "-1", "1e9", "1X", "9999999T", "inf", "nan"] {
            assert!(size(bad).is_err(), "{bad}");
        }
        assert!(size_above_zero("0").is_err() && size_above_zero("1") == Ok(1));
        assert!(limit("patience=1").is_err_and(|e| e.contains("pending-dns")));
        assert!(limit("connections").is_err() && limit("connections=1B").is_err());
        assert_eq!(limit("tunnel-depth=9"), Err("tunnel-depth must be 0 to 4, not 9".into()));
        assert_eq!(limit("tunnel-depth=none"), Err("tunnel-depth must be 0 to 4, not none".into()));
        assert_eq!(state("1M"), Ok(1 << 20));
        assert_eq!(state("1"), Err("the memory of an analysis must be 1M or more, not 1".into()));
        assert_eq!(limit("state=1K"), Err("state must be 1M or more, not 1K".into()));
        assert_eq!(limit("files=0"), Err("files must be 1 or more, not 0".into()));
    }
}
