use proptest::prelude::*;

use super::*;

#[test]
fn distances_and_edits() {
    assert_eq!(levenshtein(b"this is a string", b"this is a tring"), 1);
    assert_eq!(levenshtein(b"", b"abc"), 3);
    assert_eq!(levenshtein(b"abc", b""), 3);
    assert_eq!(edit(b"ee", b'e'), b"");
    assert_eq!(sub_bytes(b"asdf", 1, 2), b"as");
    assert_eq!(sub_bytes(b"asdf", 0, -1), b"asdf");
    assert_eq!(sub_bytes(b"asdf", 5, 1), b"");
    assert_eq!(sub_bytes(b"asdf", u64::MAX, 1), b"");
}

#[test]
fn searches() {
    let find = |start, end| find_str(b"abcabc", b"c", start, end, false, true);
    assert_eq!(find(0, -1), Ok(2));
    assert_eq!(find(3, -1), Ok(5));
    assert_eq!(find(0, 2), Ok(-1));
    assert_eq!(find(9, -1), Ok(-1));
    assert_eq!(find(3, 1), Err(BadRange));
    assert_eq!(find_str(b"abcabC", b"c", 0, -1, true, true), Ok(2));
    assert_eq!(find_str(b"abcabC", b"c", 0, -1, true, false), Ok(5));
    assert_eq!(find_str(b"abc", b"", 0, -1, true, true), Ok(3));
    assert_eq!(count_substr(b"aaaa", b"aa"), 2);
    assert_eq!(count_substr(b"aaaa", b""), 0);
    assert_eq!(replace_all(b"this is", b"is", b"at", 7).unwrap(), b"that at");
    assert_eq!(replace_all(b"abc", b"", b"x", 3).unwrap(), b"abc");
    assert_eq!(replace_all(b"aaa", b"a", b"xx", 5), Err(6));
}

#[test]
fn cuts_and_fills() {
    assert_eq!(strip(b" \t a b\n"), b"a b");
    assert_eq!(strip(b"  "), b"");
    assert_eq!(lstrip(b"xyabc", b"yx"), b"abc");
    assert_eq!(rstrip(b"abc\n\n", b"\n"), b"abc");
    assert_eq!(string_fill(5, b"ab"), b"abab\0");
    assert_eq!(string_fill(3, b""), b"\0\0\0");
    assert_eq!(string_fill(0, b"a"), b"");
    assert_eq!(safe_shell_quote(b"a$`\"\\"), b"\"a\\$\\`\\\"\\\\\"");
    assert_eq!(to_title(b"  bro is a 2x4"), b"  Bro Is A 2x4");
    assert_eq!(swap_case(b"aBc1"), b"AbC1");
    assert_eq!(remove_prefix(b"ananas", b"an"), b"as");
    assert_eq!(remove_suffix(b"abcbcbc", b"bc"), b"a");
    assert_eq!(remove_suffix(b"bcbc", b"bc"), b"");
    assert_eq!(split_indices(b"hello there", &[3, 6]), [&b"hel"[..], b"lo ", b"there"]);
    assert_eq!(split_indices(b"hello", &[2]), [&b"he"[..], b""]);
    assert_eq!(split_indices(b"hello", &[99]), [b""]);
    assert!(split_indices(b"hello", &[]).is_empty());
}

#[test]
fn encodings() {
    assert_eq!(to_hex(b"\x00\xff"), b"00ff");
    assert_eq!(from_hex(b"3034"), Ok(b"04".to_vec()));
    assert_eq!(from_hex(b"4g"), Ok(b"\x04".to_vec()));
    assert_eq!(
        from_hex(b"123").unwrap_err(),
        "Hex string '123' has invalid length (not divisible by 2)"
    );
    assert_eq!(from_hex(b"xx").unwrap_err(), "Could not read hex element from input xx");
    assert_eq!(
        hexdump(b"abc\xffdefghijklmnopqrstuvwxyz"),
        b"0000  61 62 63 ff 64 65 66 67  68 69 6a 6b 6c 6d 6e 6f  abc.defg hijklmno\n\
          0010  70 71 72 73 74 75 76 77  78 79 7a                 pqrstuvw xyz\n"
    );
    assert_eq!(hexdump(b""), [&[b' '; 50][..], b"\n"].concat());
    assert_eq!(unescape_uri(b"a%20b%u0041%u1241%%41%4"), b"a bA\x12AA%4");
    assert_eq!(unescape_uri(b"%zz%"), b"%zz%");
    assert_eq!(decode_netbios_name(b"FEEIEFCAEOEFFEECEJEPFDCAEOEBENEF"), b"THE NETBIOS NAM");
    assert_eq!(netbios_name_type(b"FEEIEFCAEOEFFEECEJEPFDCAEOEBENEF"), 0x45);
    assert_eq!((decode_netbios_name(b"x"), netbios_name_type(b"x")), (vec![], 256));
    assert_eq!(
        uuid(b"\xfe\x80\x3b\x40\xed\x78\x2d\x10\x8d\x0b\xc0\x05\x0a\x01\x02\x03"),
        "403b80fe-78ed-102d-8d0b-c0050a010203"
    );
    assert_eq!(uuid(b""), "<Invalid UUID>");
    assert_eq!(file_mode(0o644), "rw-r--r--");
    assert_eq!(file_mode(0o7755), "rwsr-sr-t");
    assert_eq!(file_mode(0o7000), "--S--S--T");
}

#[test]
fn base64_is_encoded_and_decoded() {
    assert_eq!(base64::encode(b"", None), b"");
    assert_eq!(base64::encode(b"a", None), b"YQ==");
    assert_eq!(base64::encode(b"bro", None), b"YnJv");
    let mine = b"!#$%&/(),-.:;<>@[]^ `_{|}~abcdefghijklmnopqrstuvwxyz0123456789+?";
    assert_eq!(base64::encode(b"bro", Some(mine)), b"}n-v");
    assert_eq!(base64::decode(b"}n-v", Some(mine)).0, Some(b"bro".to_vec()));
    assert_eq!(base64::decode(b"YQ==", None), (Some(b"a".to_vec()), vec![]));
    let (bytes, messages) = base64::decode(b"YQ", None);
    assert_eq!(
        (bytes, messages),
        (
            Some(b"a".to_vec()),
            vec!["incomplete base64 group, padding with 12 bits of 0".to_owned()]
        )
    );
    assert_eq!(
        base64::decode(b"Y!", None),
        (None, vec!["character 33 ignored by Base64 decoding".to_owned()])
    );
    assert_eq!(
        base64::decode(b"YQ==YQ==", None).1,
        ["extra base64 groups after '=' padding are ignored"]
    );
    assert!(base64::is_valid(b"YQ", None) && !base64::is_valid(b"Y!", None));
}

#[test]
fn paths() {
    for (path, compressed) in [
        ("./../foo", "../foo"),
        ("././../foo", "../foo"),
        ("foo/bar/../baz", "foo/baz"),
        ("./foo/./bar", "./foo/bar"),
        ("a/b/c/../../d", "a/d"),
        ("/a//b/", "/a/b"),
        ("a/", "a"),
        ("/", "/"),
        ("~/../x/.", "~/../x"),
    ] {
        assert_eq!(compress_path(path.as_bytes()), compressed.as_bytes(), "{path}");
    }
}

#[test]
fn alignments() {
    let parts = smith_waterman(b"abcdefgh", b"xxcdexx", 2, false);
    assert_eq!(parts, [Substring { bytes: b"cde".to_vec(), at: [2, 2], begins: true }]);
    assert!(smith_waterman(b"a", b"b", 2, false).is_empty());
    assert!(smith_waterman(b"", b"", 0, false).is_empty());
    let all = smith_waterman(b"hijack hijack", b"hijack", 3, true);
    assert!(all.iter().any(|part| part.bytes == b"hijack"));
}

#[test]
fn numbers_are_read() {
    assert_eq!(convert::int(b"205012", 10), Some(205_012));
    assert_eq!(convert::int(b"-205012", 10), Some(-205_012));
    assert_eq!(convert::int(b"", 10), None);
    assert_eq!(convert::int(b"  ", 10), Some(0));
    assert_eq!(convert::int(b"12a", 10), None);
    assert_eq!(convert::int(b"9999999999999999999", 10), Some(i64::MAX));
    assert_eq!(convert::int(b"-9223372036854775808", 10), Some(i64::MIN));
    assert_eq!(convert::int(b"-99999999999999999999", 10), Some(i64::MIN));
    assert_eq!(convert::int(b"0x1F", 0), Some(31));
    assert_eq!(convert::int(b"017", 0), Some(15));
    assert_eq!(convert::int(b"1", 99), None);
    assert_eq!(convert::count(b"18446744073709551616", 10), Some(u64::MAX));
    assert_eq!(convert::count(b"-1", 10), Some(u64::MAX));
    assert_eq!(convert::count(b"not a count", 10), None);
    assert_eq!(convert::count(b"deadBEEF", 16), Some(0xdead_beef));
    assert_eq!(convert::double(b" 3.5"), Some(3.5));
    assert_eq!(convert::double(b"3.5 "), None);
    assert_eq!(convert::double(b"0x1p4"), Some(16.0));
    assert_eq!(convert::double(b"-0x1.8"), Some(-1.5));
    assert_eq!(convert::double(b"--1"), None);
    assert_eq!(convert::double(b""), None);
    assert_eq!(convert::bytes_to_count(b"\x01\x02\x03", false), Some(0x01_0203));
    assert_eq!(convert::bytes_to_count(b"\x01\x02\x03", true), Some(0x03_0201));
    assert_eq!(convert::bytes_to_count(&[0; 9], false), None);
}

#[test]
fn addresses_are_read() {
    let v4 = |a, b, c, d| [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d];
    assert_eq!(convert::addr(b"10.20.30.40"), Some(v4(10, 20, 30, 40)));
    assert_eq!(convert::addr(b"010.1.1.1"), Some(v4(10, 1, 1, 1)));
    assert_eq!(convert::addr(b"1.2.3.256"), None);
    assert_eq!(convert::addr(b"1.2.3.4x"), None);
    assert_eq!(convert::addr(b"::ffff:1.2.3.4"), Some(v4(1, 2, 3, 4)));
    assert_eq!(convert::addr(b"::1::"), None);
    assert_eq!(convert::subnet(b"10.1.2.3/8"), Some((v4(10, 0, 0, 0), 8)));
    assert_eq!(convert::subnet(b"2607:f8b0::1/32").map(|s| s.1), Some(32));
    assert_eq!(convert::subnet(b"::ffff:10.0.0.0/104"), Some((v4(10, 0, 0, 0), 8)));
    assert_eq!(convert::subnet(b"10.0.0.0/33"), None);
    assert_eq!(convert::prefix(b"::ffff:0:0/1"), Some(([0; 16], 1)));
    assert_eq!(convert::prefix(b"::ffff:0:0/100"), Some((v4(0, 0, 0, 0), 100)));
    assert_eq!(convert::prefix(b"10.0.0.0/8"), Some((v4(10, 0, 0, 0), 104)));
    assert_eq!(convert::subnet(b"10.0.0.0"), None);
    assert_eq!(convert::port(b"53/udp"), Some((53, convert::Transport::Udp)));
    assert_eq!(convert::port(b"53"), None);
    assert_eq!(convert::port(b"53/sctp"), None);
    assert_eq!(convert::ptr_name(b"3.2.1.10.in-addr.arpa"), Some(v4(10, 1, 2, 3)));
    assert_eq!(convert::ptr_name(b"nonsense"), None);
    let six = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x4f];
    assert_eq!(convert::ptr_name(convert::to_ptr_name(six).as_bytes()), Some(six));
    assert_eq!(convert::to_ptr_name(v4(1, 2, 3, 4)), "4.3.2.1.in-addr.arpa");
}

#[test]
fn hosts_of_ftp_are_read() {
    assert_eq!(convert::ftp_port(b"192,168,0,2,1,1"), Some(([192, 168, 0, 2], 257)));
    assert_eq!(convert::ftp_port(b"192,168,0,256,1,1"), None);
    assert_eq!(
        convert::ftp_pasv(b"227 Entering Passive Mode (192,168,1,2,4,31)"),
        Some(([192, 168, 1, 2], 1055))
    );
    assert_eq!(convert::ftp_pasv(b"at 192,168,1,2,4,31"), Some(([192, 168, 1, 2], 1055)));
    assert_eq!(convert::ftp_pasv(b"no"), None);
    let v4 = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 168, 0, 2];
    assert_eq!(convert::ftp_eprt(b"|1|192.168.0.2|257|"), (v4, 257, true));
    assert_eq!(convert::ftp_eprt(b"|||257|"), ([0; 16], 257, true));
    assert!(!convert::ftp_eprt(b"|1|x|257|").2);
    assert!(!convert::ftp_eprt(b"").2);
}

proptest! {
    #[test]
    fn base64_reads_back(data: Vec<u8>) {
        prop_assert_eq!(base64::decode(&base64::encode(&data, None), None), (Some(data), vec![]));
    }

    #[test]
    fn hex_reads_back(data: Vec<u8>) {
        prop_assert_eq!(from_hex(&to_hex(&data)), Ok(data));
    }

    #[test]
    fn integers_read_back(value: i64, other: u64) {
        prop_assert_eq!(convert::int(value.to_string().as_bytes(), 10), Some(value));
        prop_assert_eq!(convert::count(other.to_string().as_bytes(), 10), Some(other));
    }

    #[test]
    fn distances_are_symmetric(a in "[ab]{0,6}", b in "[ab]{0,6}") {
        let there = levenshtein(a.as_bytes(), b.as_bytes());
        prop_assert_eq!(there, levenshtein(b.as_bytes(), a.as_bytes()));
        prop_assert_eq!(there == 0, a == b);
    }

    #[test]
    fn substrings_of_alignments_have_correct_offsets(a in "[ab]{0,9}", b in "[ab]{0,9}", min in 0_u64..4, repeated: bool) {
        for part in smith_waterman(a.as_bytes(), b.as_bytes(), min, repeated) {
            prop_assert_eq!(&a.as_bytes()[part.at[0]..part.at[0] + part.bytes.len()], &part.bytes);
            prop_assert_eq!(&b.as_bytes()[part.at[1]..part.at[1] + part.bytes.len()], &part.bytes);
        }
    }

    #[test]
    fn any_input_is_accepted(text: Vec<u8>, other: Vec<u8>, base in 0_u64..40) {
        let _ = (convert::int(&text, base), convert::double(&text), convert::subnet(&text), convert::port(&text));
        let _ = (convert::ptr_name(&text), convert::ftp_pasv(&text), convert::ftp_eprt(&text), unescape_uri(&text));
        let _ = (compress_path(&text), hexdump(&text), base64::decode(&text, None), remove_suffix(&text, &other));
        let _ = find_str(&text, &other, base, base as i64 - 3, true, false);
    }
}
