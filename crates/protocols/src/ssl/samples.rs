//! Messages for tests, put together from their parts.

/// A TLS record.
pub(super) fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![kind, 3, 3];
    out.extend((content.len() as u16).to_be_bytes());
    out.extend(content);
    out
}

/// A handshake message.
pub(super) fn message(ty: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![ty];
    out.extend(&(body.len() as u32).to_be_bytes()[1..]);
    out.extend(body);
    out
}

/// An extension.
pub(super) fn extension(ty: u16, data: &[u8]) -> Vec<u8> {
    let mut out = ty.to_be_bytes().to_vec();
    out.extend((data.len() as u16).to_be_bytes());
    out.extend(data);
    out
}

/// A server_name extension.
pub(super) fn server_name(host: &[u8]) -> Vec<u8> {
    let n = host.len() as u16;
    let mut data = (n + 3).to_be_bytes().to_vec();
    data.push(0);
    data.extend(n.to_be_bytes());
    data.extend(host);
    extension(0, &data)
}

fn with_extensions(mut body: Vec<u8>, extensions: &[Vec<u8>]) -> Vec<u8> {
    let all = extensions.concat();
    body.extend((all.len() as u16).to_be_bytes());
    body.extend(all);
    body
}

/// The body of a ClientHello that offers one cipher suite.
pub(super) fn client_hello(version: u16, session_id: &[u8], extensions: &[Vec<u8>]) -> Vec<u8> {
    let mut body = version.to_be_bytes().to_vec();
    body.extend([7; 32]);
    body.push(session_id.len() as u8);
    body.extend(session_id);
    if version >> 8 == 0xfe {
        body.push(0); // no cookie
    }
    body.extend([0, 2, 0xc0, 0x2f, 1, 0]);
    with_extensions(body, extensions)
}

/// The body of a ServerHello.
pub(super) fn server_hello(
    version: u16,
    session_id: &[u8],
    cipher: u16,
    extensions: &[Vec<u8>],
) -> Vec<u8> {
    let mut body = version.to_be_bytes().to_vec();
    body.extend([8; 32]);
    body.push(session_id.len() as u8);
    body.extend(session_id);
    body.extend(cipher.to_be_bytes());
    body.push(0);
    with_extensions(body, extensions)
}

/// The body of a ServerKeyExchange with secp256r1 and a signature, as from TLS 1.2 on.
pub(super) fn ecdhe() -> Vec<u8> {
    let mut body = vec![3, 0, 23, 4, 1, 2, 3, 4];
    body.extend([4, 1, 0, 2, 9, 9]);
    body
}
