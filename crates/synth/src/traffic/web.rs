//! HTTP/1.1 (RFC 9112).

use gannet_base::Interval;

use super::Ends;
use super::host;
use super::prose;
use super::word;
use crate::Rng;
use crate::Trace;

const AGENTS: [&str; 4] = [
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 \
     Safari/537.36",
    "curl/8.9.1",
    "python-requests/2.32.3",
];

pub(super) fn http(trace: &mut Trace, ends: Ends) {
    let mut rng = Rng::new(trace.rng().next_u64());
    let name = host(&mut rng);
    let agent = AGENTS[rng.below(4) as usize];
    let port = [80, 80, 80, 80, 8_080, 8_000][rng.below(6) as usize];
    let mut tcp = trace.connect(ends.client(), ends.server(port));
    for _ in 0..=rng.below(6) {
        tcp.send(&request(&mut rng, &name, agent));
        tcp.wait(Interval::from_millis(rng.below(30) as i64));
        tcp.reply(&response(&mut rng));
    }
    if rng.below(8) == 0 { tcp.reset() } else { tcp.close() }
}

fn request(rng: &mut Rng, host: &str, agent: &str) -> Vec<u8> {
    let path = format!("/{}/{}.{}", word(rng, 5), word(rng, 9), word(rng, 3));
    let mut head = String::new();
    let mut body = String::new();
    let method = match rng.below(10) {
        0 => {
            body =
                format!("{}={}&{}={}", word(rng, 4), word(rng, 12), word(rng, 3), rng.below(999));
            "POST"
        }
        1 => "HEAD",
        _ => "GET",
    };
    let query = if rng.below(3) == 0 {
        format!("?q={}&n={}", word(rng, 7), rng.below(99))
    } else {
        String::new()
    };
    for line in [
        format!("{method} {path}{query} HTTP/1.1"),
        format!("Host: {host}"),
        format!("User-Agent: {agent}"),
        "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8".to_owned(),
        "Accept-Language: en-GB,en;q=0.5".to_owned(),
        "Accept-Encoding: identity".to_owned(),
        format!("Cookie: session={}; theme=dark", word(rng, 24)),
        "Connection: keep-alive".to_owned(),
    ] {
        head.push_str(&line);
        head.push_str("\r\n");
    }
    if rng.below(2) == 0 {
        head.push_str(&format!("Referer: http://{host}/\r\n"));
    }
    if !body.is_empty() {
        head.push_str(&format!(
            "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n",
            body.len()
        ));
    }
    // HEAD is answered like GET, but without a body.
    format!("{head}\r\n{body}").into_bytes()
}

fn response(rng: &mut Rng) -> Vec<u8> {
    let common = "Date: Tue, 14 Nov 2023 22:13:20 GMT\r\nServer: synth/1.0\r\nX-Cache: HIT\r\n\
                  Vary: Accept-Encoding\r\nCache-Control: max-age=600\r\n";
    let draw = rng.below(12);
    if draw == 0 {
        return format!("HTTP/1.1 304 Not Modified\r\n{common}\r\n").into_bytes();
    }
    if draw == 1 {
        let to = host(rng);
        return format!(
            "HTTP/1.1 302 Found\r\n{common}Location: http://{to}/\r\nContent-Length: 0\r\n\r\n"
        )
        .into_bytes();
    }
    let size = (rng.below(90) * rng.below(90) + 40) as usize;
    let (kind, body) = match draw {
        2..=5 => {
            let text = prose(rng, size);
            (
                "text/html; charset=utf-8",
                format!("<!DOCTYPE html>\n<html><body>{text}").into_bytes(),
            )
        }
        6 | 7 => ("image/png", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", &rng.bytes(size)[..]].concat()),
        8 => (
            "application/json",
            format!("{{\"{}\":\"{}\"}}", word(rng, 4), prose(rng, size)).into_bytes(),
        ),
        9 => ("application/octet-stream", rng.bytes(size * 2)),
        _ => ("image/jpeg", [b"\xff\xd8\xff\xe0\0\x10JFIF\0", &rng.bytes(size)[..]].concat()),
    };
    let status = if draw == 5 { "404 Not Found" } else { "200 OK" };
    let head = format!("HTTP/1.1 {status}\r\n{common}Content-Type: {kind}\r\n");
    if rng.below(4) == 0 {
        let mut out = format!("{head}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
        for part in body.chunks(900) {
            out.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
            out.extend_from_slice(part);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"0\r\n\r\n");
        return out;
    }
    [format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes(), &body].concat()
}
