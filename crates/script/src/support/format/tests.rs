use proptest::prelude::*;

use super::fmt::{Arg, Error, fmt};
use super::*;

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn doubles() {
    for (value, expected) in [
        (0.0, "0.0"),
        (-0.0, "0.0"),
        (1.0, "1.0"),
        (-2.5, "-2.5"),
        (0.1, "0.1"),
        (3.162_277_660_168_38, "3.162278"),
        (2_147_483_647.0, "2147483647.0"),
        (2_147_483_648.0, "2.147483648e+09"),
        (1e10, "1e+10"),
        (1.5e300, "1.5e+300"),
        (0.000_001, "0.000001"),
        (0.000_000_1, "1e-07"),
        (1.234_567_89e-10, "1.23457e-10"),
        (1.000_000_000_01, "1.0"),
        (0.999_999_99, "1"),
        (0.007_812_5, "0.007812"),
        (1_362_692_526.869_344, "1362692526.869344"),
        (f64::NAN, "nan"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
    ] {
        assert_eq!(text(|out| double(out, value)), expected, "{value}");
    }
    assert_eq!(text(|out| double_of_log(out, 1e20)), "100000000000000000000.0");
    assert_eq!(text(|out| double_of_log(out, 1e-7)), "0");
    assert_eq!(text(|out| double_of_log(out, 123_456_789.123_456_78)), "123456789.123457");
    assert_eq!(text(|out| seconds_of_log(out, 1.5)), "1.500000");
}

#[test]
fn doubles_in_json() {
    for (value, expected) in [
        (1.0, "1.0"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1e20, "100000000000000000000.0"),
        (1e22, "1e22"),
        (1.5e-5, "0.000015"),
        (1e-7, "1e-7"),
        (-1.25e-9, "-1.25e-9"),
        (1_300_475_167.096_535, "1300475167.096535"),
        (f64::NAN, "null"),
    ] {
        assert_eq!(text(|out| double_of_json(out, value)), expected);
    }
}

#[test]
fn intervals() {
    for (value, expected) in [
        (0.0, "0 secs"),
        (1.0, "1.0 sec"),
        (-1.0, "-1.0 sec"),
        (86_400.0 + 36_000.0, "1.0 day 10.0 hrs"),
        (90.5, "1.0 min 30.0 secs 500.0 msecs"),
        (0.001_5, "1.0 msec 500.0 usecs"),
        (-90.0, "-1.0 min -30.0 secs"),
        (1e-7, "0.1 usecs"),
        (2.0 * 86_400.0, "2.0 days"),
    ] {
        assert_eq!(text(|out| interval(out, value)), expected, "{value}");
    }
}

#[test]
fn addresses() {
    let v4 = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1];
    assert_eq!(text(|out| addr(out, v4)), "10.0.0.1");
    assert_eq!(text(|out| subnet(out, v4, 8)), "10.0.0.1/8");
    assert_eq!(text(|out| addr_hex(out, v4)), "0a000001");
    let v6 = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    assert_eq!(text(|out| addr(out, v6)), "2001:db8::1");
    assert_eq!(text(|out| addr_hex(out, v6)), "20010db8000000000000000000000001");
}

#[test]
fn formats() {
    let one = |format: &str, arg: Arg<'_>| {
        let formatted = fmt(format.as_bytes(), &[arg]);
        assert_eq!(formatted.errors, [], "{format}");
        String::from_utf8(formatted.text).unwrap()
    };
    for (format, arg, expected) in [
        ("%s", Arg::Text(b"test"), "test"),
        ("%s", Arg::Int(0, b"F"), "F"),
        ("%d", Arg::Int(0, b"F"), "0"),
        ("%s", Arg::Double(3.0), "3.0"),
        ("%d%%", Arg::Int(-5, b"-5"), "-5%"),
        ("%5d|", Arg::Count(42, b"42"), "   42|"),
        ("%-5d|", Arg::Count(42, b"42"), "42   |"),
        ("%05d", Arg::Int(-42, b"-42"), "-0042"),
        ("%x", Arg::Int(-1, b"-1"), "ffffffffffffffff"),
        ("%04x", Arg::Count(255, b"255"), "00ff"),
        ("%x", Arg::Addr([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 1, 2, 3, 4]), "01020304"),
        ("%.3f", Arg::Double(3.162_28), "3.162"),
        ("%8.2f|", Arg::Double(-1.5), "   -1.50|"),
        ("%08.2f|", Arg::Double(-1.5), "-0001.50|"),
        ("%e", Arg::Double(12_345.678), "1.234568e+04"),
        ("%.2e", Arg::Double(0.000_123), "1.23e-04"),
        ("%g", Arg::Double(0.000_1), "0.0001"),
        ("%g", Arg::Double(1e10), "1e+10"),
        ("%.3g", Arg::Double(1_234.0), "1.23e+03"),
        ("%g", Arg::Double(100.0), "100"),
        ("%f", Arg::Interval(1.0), "1.000000"),
        ("%10s|", Arg::Text(b"abc"), "       abc|"),
        ("%-10s|", Arg::Text(b"abc"), "abc       |"),
        ("%D", Arg::Time(1_234_567_890.0), "2009-02-13-23:31:30"),
        ("%T", Arg::Time(1_234_567_890.5), "2009-02-13-23:31:30.500000000"),
    ] {
        assert_eq!(one(format, arg), expected, "{format}");
    }
}

#[test]
fn formats_report_errors() {
    let errors = |format: &str, args: &[Arg<'_>]| fmt(format.as_bytes(), args).errors;
    assert_eq!(errors("%d", &[]), [Error::TooFew]);
    assert_eq!(errors("", &[Arg::Double(1.0)]), [Error::TooMany]);
    assert_eq!(errors("%s", &[Arg::Text(b""), Arg::Text(b"")]), [Error::TooMany]);
    assert_eq!(errors("%d", &[Arg::Text(b"x")]), [Error::NoInteger(0)]);
    assert_eq!(errors("%f", &[Arg::Count(1, b"1")]), [Error::NoDouble(0)]);
    assert_eq!(errors("%D", &[Arg::Double(1.0)]), [Error::NoTime(0)]);
    assert_eq!(errors("%200d", &[Arg::Int(1, b"1")]), [Error::Excessive]);
    assert_eq!(errors("%.2s", &[Arg::Text(b"x")]), [Error::Precision]);
    assert_eq!(errors("%q", &[Arg::Text(b"x")]), [Error::BadFormat]);
    assert_eq!(errors("%", &[Arg::Text(b"x")]), [Error::BadFormat]);
    // Text after the last directive is kept.
    assert_eq!(fmt(b"%s and", &[Arg::Text(b"x")]).text, b"x and");
    assert_eq!(fmt(b"a%%b", &[]).text, b"a%b");
    assert_eq!(fmt(b"a\0b", &[]).text, b"a");
    assert_eq!(Error::TooMany.message().0, "too many arguments for format");
}

#[test]
fn strings() {
    assert_eq!(text(|out| escape::printed(out, b"a\\\"\x00\xff\n")), r#"a\"\x00\xff\x0a"#);
    assert_eq!(text(|out| escape::escaped(out, b"a\\\"\xff")), r#"a\\"\xff"#);
    assert_eq!(text(|out| escape::literal(out, b"a\\\"'\xff")), r#"a\\\"\'\xff"#);
    assert_eq!(escape::utf8("é\n".as_bytes()), "é\n".as_bytes());
    assert_eq!(escape::utf8(b"\xc3\xa9\x01"), b"\\xc3\\xa9\\x01");
    assert_eq!(text(|out| json::string(out, b"\x7f\"\\")), r#""\\x7f\"\\""#);
    assert_eq!(text(|out| json::quoted(out, b"\x01\x7f")), "\"\\u0001\x7f\"");
}

#[test]
fn times() {
    let s = |format: &str, t: f64| String::from_utf8(time::strftime(format.as_bytes(), t)).unwrap();
    assert_eq!(s("%Y-%m-%d %H:%M:%S", 1_335_455_545.0), "2012-04-26 15:52:25");
    assert_eq!(
        s("%a %A %b %B %d %e %j %p %I %y %C", 0.0),
        "Thu Thursday Jan January 01  1 001 AM 12 70 19"
    );
    assert_eq!(
        s("%c|%D|%F|%R|%T|%r", 0.0),
        "Thu Jan  1 00:00:00 1970|01/01/70|1970-01-01|00:00|00:00:00|12:00:00 AM"
    );
    assert_eq!(s("%s %u %w %U %W %V %G %g", 1_230_768_000.0), "1230768000 4 4 00 00 01 2009 09");
    assert_eq!(s("%-d %_m %3d %^a %#p %Q %%", 0.0), "1  1 001 THU am %Q %");
    assert_eq!(s("%z", 0.0), "+0000");
    assert_eq!(s("", 0.0), "<strftime error>");
    assert_eq!(s(&"x".repeat(128), 0.0), "<strftime error>");
    assert_eq!(s("%Y", -62_135_596_801.0), "0");
}

#[test]
fn times_are_read() {
    let p = |format: &str, t: &str| time::strptime(format.as_bytes(), t.as_bytes());
    assert_eq!(p("%Y-%m-%d %H:%M:%S", "2012-04-26 15:52:25"), Some(1_335_455_545.0));
    assert_eq!(p("%Y-%m-%d", "1980-10-24"), Some(341_193_600.0));
    assert_eq!(p("%b %d %Y %I:%M %p", "Oct 24 1980 01:30 PM"), Some(341_242_200.0));
    assert_eq!(p("%s", "1335455545"), Some(1_335_455_545.0));
    assert_eq!(p("%j %Y", "298 1980"), Some(341_193_600.0));
    assert_eq!(p("%y", "69"), Some(-31_536_000.0));
    assert_eq!(p("%H", "7 and more"), Some(25_200.0));
    assert_eq!(p("%Y-%m-%d", "1980-13-24"), None);
    assert_eq!(p("%Y", "x"), None);
    assert_eq!(p("%q", "x"), None);
    assert_eq!(p("%FT%T%z", "2012-04-26T15:52:25+02:00"), Some(1_335_455_545.0));
}

#[test]
fn json_is_read() {
    use json::{Json, parse};
    assert_eq!(parse(b" null "), Ok(Json::Null));
    assert_eq!(parse(b"18446744073709551615"), Ok(Json::Count(u64::MAX)));
    assert_eq!(parse(b"-1"), Ok(Json::Int(-1)));
    assert_eq!(parse(b"18446744073709551616"), Ok(Json::Double(18_446_744_073_709_551_616.0)));
    assert_eq!(parse(br#""a\u00e9\ud83d\ude00\/""#), Ok(Json::String("aé😀/".into())));
    let object = parse(br#"{"a": [], "b": {"c": true}, "a": 1e3}"#).unwrap();
    let Json::Object(members) = object else { panic!() };
    assert_eq!(members[0], (b"a".to_vec(), Json::Array(vec![])));
    assert_eq!(members[1].1, Json::Object(vec![(b"c".to_vec(), Json::Bool(true))]));
    assert_eq!(members[2].1, Json::Double(1_000.0));
    for (text, message, offset) in [
        ("", "The document is empty.", 0),
        ("1 2", "The document root must not be followed by other values.", 2),
        ("nul", "Invalid value.", 3),
        ("[1", "Missing a comma or ] after an array element.", 2),
        ("{\"a\":1", "Missing a comma or } after an object member.", 6),
        ("{a", "Missing a name for object member.", 1),
        ("{\"a\"}", "Missing a colon after a name of object member.", 4),
        ("\"a", "Missing a closing quotation mark in string.", 2),
        (r#""\x""#, "Invalid escape character in string.", 1),
        (r#""\ud800""#, "The surrogate pair in string is invalid.", 1),
        (r#""\u12g4""#, "Incorrect hex digit after \\u escape in string.", 1),
        ("1.", "Miss fraction part in number.", 2),
        ("1e", "Miss exponent in number.", 2),
        ("-", "Invalid value.", 1),
        ("1e999", "Number too big to be stored in double.", 0),
        ("\"\u{1}\"", "Invalid encoding in string.", 1),
        ("01", "The document root must not be followed by other values.", 1),
    ] {
        let error = parse(text.as_bytes()).unwrap_err();
        assert_eq!((error.message, error.offset), (message, offset), "{text}");
    }
    assert!(parse("[".repeat(1_000_000).as_bytes()).is_err());
}

proptest! {
    #[test]
    fn seconds_of_logs_have_the_digits_of_any_double(value: f64, near in -1e10..1e10_f64, small in -1e-5..1e-5_f64, tie: i32) {
        // Odd multiples of 1/128 are halfway between two millionths.
        for value in [value, near, small, f64::from(tie) / 128.0, -0.0] {
            if !value.is_nan() {
                prop_assert_eq!(text(|out| seconds_of_log(out, value)), format!("{value:.6}"));
            }
        }
    }

    #[test]
    fn doubles_of_json_read_back(value: f64) {
        prop_assume!(value.is_finite());
        let written = text(|out| double_of_json(out, value));
        prop_assert_eq!(written.parse::<f64>().unwrap().to_bits(), value.to_bits());
        prop_assert!(matches!(json::parse(written.as_bytes()), Ok(json::Json::Double(_))));
    }

    #[test]
    fn strings_of_json_read_back(string in "\\PC*") {
        let written = text(|out| json::string(out, string.as_bytes()));
        let shown = escape::utf8(string.as_bytes());
        prop_assert_eq!(json::parse(written.as_bytes()), Ok(json::Json::String(shown)));
    }

    #[test]
    fn times_read_back(seconds in -60_000_000_000_i64..250_000_000_000) {
        let written = time::strftime(b"%Y-%m-%d %H:%M:%S", seconds as f64);
        prop_assert_eq!(time::strptime(b"%Y-%m-%d %H:%M:%S", &written), Some(seconds as f64));
    }

    #[test]
    fn any_format_and_any_text_are_accepted(format: Vec<u8>, text: Vec<u8>, value: f64) {
        let _ = fmt(&format, &[Arg::Double(value), Arg::Text(&text), Arg::Int(3, b"3")]);
        let _ = (time::strftime(&format, value), time::strptime(&format, &text), json::parse(&text));
    }

    #[test]
    fn formats_with_directives_are_accepted(format in "(%[-0]?[0-9.]{0,3}[a-zA-Z]){0,3}", value: f64) {
        let _ = fmt(format.as_bytes(), &[Arg::Double(value), Arg::Time(value), Arg::Int(-3, b"-3")]);
        let _ = (time::strftime(format.as_bytes(), value), time::strptime(format.as_bytes(), b"12 34 56"));
    }
}
