//! Settings: ASN.1 that is skipped (T.125, T.124), then blocks with type and length (MS-RDPBCGR
//! section 2.2.1.3 and 2.2.1.4). Integers in blocks are little-endian.

use crate::support::OutOfBound;
use crate::support::Record;
use crate::support::RecordFault;
use crate::support::ber;

/// Maximum number of channels, and of certificates.
const MAX_COUNT: u32 = 1000;
/// Maximum length of a certificate, in bytes.
const MAX_CERTIFICATE: u32 = 256 << 10;

/// The client's core settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientCore<'a> {
    /// Major and minor version.
    pub version: [u16; 2],
    /// Color depth code of RDP 4.0.
    pub old_depth: u16,
    /// Secure access sequence.
    pub sas_sequence: u16,
    /// Keyboard type, subtype, and number of function keys.
    pub keyboard_kind: [u32; 3],
    /// Color depth code of RDP 5, product identifier, flags of supported color depths, early
    /// capability flags.
    pub late_fields: [u16; 4],
    /// Serial number of the product.
    pub serial: u32,
    /// Width of the desktop in pixels.
    pub width: u16,
    /// Height of the desktop in pixels.
    pub height: u16,
    /// Keyboard layout: a language identifier.
    pub keyboard: u32,
    /// The client's build number.
    pub build: u32,
    /// The client's name, in UTF-16.
    pub name: &'a [u8],
    /// Name of the input method editor, in UTF-16.
    pub input_method: &'a [u8],
    /// Color depth in bits per pixel.
    pub depth: u16,
    /// Digital product identifier, in UTF-16.
    pub product: &'a [u8],
}

/// The server's settings of RDP's own encryption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSecurity<'a> {
    /// Encryption method.
    pub method: u32,
    /// Encryption level.
    pub level: u32,
    /// Type of the certificate: 1 is proprietary, 2 X.509.
    pub cert_type: u32,
    /// Whether the certificate is permanent.
    pub cert_permanent: bool,
    /// X.509 certificates.
    pub certs: Vec<&'a [u8]>,
}

/// A block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block<'a> {
    /// Core settings of the client.
    ClientCore(ClientCore<'a>),
    /// Virtual channels that the client requests: name and options.
    ClientNetwork(Vec<(&'a [u8], u32)>),
    /// Encryption methods of the client: those of all clients, and of French locale clients.
    ClientSecurity([u32; 2]),
    /// Cluster settings of the client: flags and session id.
    ClientCluster([u32; 2]),
    /// Encryption settings of the server.
    ServerSecurity(ServerSecurity<'a>),
    /// The X.509 certificates before an invalid one; nothing follows.
    TruncatedSecurity(Vec<&'a [u8]>, RecordFault),
    /// Any other block.
    Other,
}

/// The client's blocks, after a valid header.
pub fn client(data: &[u8]) -> Result<Blocks<'_>, RecordFault> {
    let mut r = Record::new("Client_Header", data);
    // Length of the request, selectors, flag.
    for _ in 0..4 {
        value(&mut r)?;
    }
    // Target, minimum and maximum parameters.
    for pad in ["targ_parameters_pad", "min_parameters_pad", "max_parameters_pad"] {
        let n = length(&mut r)?;
        r.string(pad, n)?;
    }
    r.upto("user_data_length", 4)?;
    let mut key = Record::new("GCC_Client_Connection_Data", r.rest());
    connection_data(&mut key, 2)?;
    let mut request = Record::new("GCC_Client_Create_Request", key.rest());
    request.upto("h221_nonstandard_length", 8)?;
    skip_owner(&mut request, b"Duca")?;
    Ok(Blocks(request.rest()))
}

/// The result of the server's response and its blocks, after a valid header.
pub fn server(data: &[u8]) -> Result<(u8, Blocks<'_>), RecordFault> {
    let mut r = Record::new("Server_Header", data);
    r.upto("type_length", 3)?;
    value(&mut r)?;
    value(&mut r)?;
    let n = length(&mut r)?;
    r.string("domain_parameters", n)?;
    r.upto("user_data_length", 4)?;
    let mut key = Record::new("GCC_Server_Connection_Data", r.rest());
    connection_data(&mut key, 1)?;
    let mut response = Record::new("GCC_Server_Create_Response", key.rest());
    let result = response.upto("h221_nonstandard_length", 9)?[5];
    skip_owner(&mut response, b"McDn")?;
    Ok((result, Blocks(response.rest())))
}

/// Reads the tag and length of a value, and returns the length.
fn length(r: &mut Record<'_>) -> Result<i64, OutOfBound> {
    let mut meta = Record::new("ASN1EncodingMeta", r.rest());
    let first = meta.upto("len", 2)?[1];
    let mut n = i64::from(first);
    if first & 0x80 != 0 {
        let octets = meta.upto("more_len", usize::from(first & 0x7f))?;
        n = i64::from(ber::unsigned(octets) as i32);
    }
    r.at += meta.at;
    Ok(n)
}

/// Skips a value.
fn value(r: &mut Record<'_>) -> Result<(), OutOfBound> {
    let mut inner = Record::new("ASN1Encoding", r.rest());
    let n = length(&mut inner)?;
    inner.string("content", n)?;
    r.at += inner.at;
    Ok(())
}

/// Skips a key with its length, and the rest.
fn connection_data(r: &mut Record<'_>, rest: usize) -> Result<(), OutOfBound> {
    let n = r.upto("key_object_length", 2).map(|d| u16::from_be_bytes([d[0], d[1]]))?;
    r.list("key_object", n, 1)?;
    r.upto("connect_data_connect_pdu", rest).map(drop)
}

/// Skips the owner (`key`) of the settings and their length.
fn skip_owner(r: &mut Record<'_>, key: &[u8]) -> Result<(), RecordFault> {
    if !r.rest().starts_with(key) {
        return Err(RecordFault::Syntax);
    }
    r.at += key.len();
    r.upto("user_data_value_length", 2)?;
    Ok(())
}

/// Iterator over blocks.
#[derive(Clone, Copy, Debug)]
pub struct Blocks<'a>(&'a [u8]);

impl<'a> Iterator for Blocks<'a> {
    /// An error if a block is invalid; nothing follows it.
    type Item = Result<Block<'a>, RecordFault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let block = self.block();
        if block.is_err() {
            self.0 = &[];
        }
        Some(block)
    }
}

impl<'a> Blocks<'a> {
    fn block(&mut self) -> Result<Block<'a>, RecordFault> {
        let head = Record::new("Data_Header", self.0).all(4)?;
        let kind = u16::from_le_bytes([head[0], head[1]]);
        let length = u16::from_le_bytes([head[2], head[3]]);
        let mut all = Record { at: 4, ..Record::new("Data_Block", self.0) };
        all.string("block", i64::from(length) - 4)?;
        let (body, rest) = (&self.0[4..all.at], all.rest());
        self.0 = rest;
        match kind {
            0xc001 => return Ok(Block::ClientCore(client_core(body)?)),
            0xc002 => {
                let d = Record::new("Client_Security_Data", body).all(8)?;
                return Ok(Block::ClientSecurity([u32_le(d, 0), u32_le(d, 4)]));
            }
            0xc003 => return Ok(Block::ClientNetwork(channels(body)?)),
            0xc004 => {
                let d = Record::new("Client_Cluster_Data", body).all(8)?;
                return Ok(Block::ClientCluster([u32_le(d, 0), u32_le(d, 4)]));
            }
            0x0c01 => {
                let mut r = Record::new("Server_Core_Data", body);
                let version = r.upto("version_minor", 4)?;
                if length == 8 { version } else { r.upto("client_requested_protocols", 4)? }
            }
            0x0c02 => return security(body),
            0x0c03 => Record::new("Server_Network_Data", body).all(4)?,
            _ => &[],
        };
        Ok(Block::Other)
    }
}

fn u16_le(d: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([d[at], d[at + 1]])
}

fn u32_le(d: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([d[at], d[at + 1], d[at + 2], d[at + 3]])
}

fn client_core(body: &[u8]) -> Result<ClientCore<'_>, OutOfBound> {
    let mut r = Record::new("Client_Core_Data", body);
    let head = r.upto("client_build", 20)?;
    let name = r.upto("client_name", 32)?;
    let kind = r.upto("keyboard_function_key", 12)?;
    let input_method = r.upto("ime_file_name", 64)?;
    let late_fields = r.upto("early_capability_flags", 14)?;
    let product = r.upto("dig_product_id", 64)?;
    Ok(ClientCore {
        version: [u16_le(head, 0), u16_le(head, 2)],
        old_depth: u16_le(head, 8),
        sas_sequence: u16_le(head, 10),
        keyboard_kind: [u32_le(kind, 0), u32_le(kind, 4), u32_le(kind, 8)],
        late_fields: [
            u16_le(late_fields, 0),
            u16_le(late_fields, 2),
            u16_le(late_fields, 10),
            u16_le(late_fields, 12),
        ],
        serial: u32_le(late_fields, 4),
        width: u16_le(head, 4),
        height: u16_le(head, 6),
        keyboard: u32_le(head, 12),
        build: u32_le(head, 16),
        name,
        input_method,
        depth: u16_le(late_fields, 8),
        product,
    })
}

/// Reads the number of elements of a list, which must not exceed `max`.
fn bounded(r: &mut Record<'_>, field: &'static str, max: u32) -> Result<u32, RecordFault> {
    let n = u32_le(r.upto(field, 4)?, 0);
    let name = match field {
        "channel_count" => "Client_Network_Data:channel_count",
        "num_of_certs" => "X509:num_of_certs",
        _ => "X509_Cert_Data:cert_len",
    };
    if n > max { Err(RecordFault::Value(name)) } else { Ok(n) }
}

/// Names and options of virtual channels.
fn channels(body: &[u8]) -> Result<Vec<(&[u8], u32)>, RecordFault> {
    let mut r = Record::new("Client_Network_Data", body);
    let count = bounded(&mut r, "channel_count", MAX_COUNT)?;
    let left = r.rest().len();
    if count as usize > left {
        let field = "channel_def_array";
        return Err(OutOfBound::new("Client_Network_Data", field, count.into(), left).into());
    }
    let mut names = Vec::new();
    for _ in 0..count {
        let mut channel = Record::new("Client_Channel_Def", r.rest());
        let name = channel.upto("name", 8)?;
        names.push((name, u32_le(channel.upto("options", 4)?, 0)));
        r.at += channel.at;
    }
    Ok(names)
}

fn security(body: &[u8]) -> Result<Block<'_>, RecordFault> {
    let mut r = Record::new("Server_Security_Data", body);
    let head = r.upto("server_cert_length", 16)?;
    let [method, level, random, length] = [0, 4, 8, 12].map(|at| u32_le(head, at));
    let none = level == 0 && method == 0 && random == 0;
    if !none && random != 0x20 {
        return Err(RecordFault::Value("Server_Security_Data:server_random_length"));
    }
    r.string("server_random", random.into())?;
    let start = r.at;
    r.string("server_certificate", i64::from(length as i32))?;
    let mut cert = Record::new("Server_Certificate", &body[start..r.at]);
    let version = u32_le(cert.upto("version", 4)?, 0);
    let cert_type = version & 0x7fff_ffff;
    let mut certs = Vec::new();
    match cert_type {
        1 => proprietary(cert.rest())?,
        2 => {
            let mut all = Record::new("X509", cert.rest());
            let count = bounded(&mut all, "num_of_certs", MAX_COUNT)?;
            let left = all.rest().len();
            if count as usize > left {
                return Err(OutOfBound::new("X509", "certs", count.into(), left).into());
            }
            for _ in 0..count {
                match certificate(&mut all) {
                    Ok(cert) => certs.push(cert),
                    Err(e) => return Ok(Block::TruncatedSecurity(certs, e)),
                }
            }
        }
        n => return Err(RecordFault::Case { record: "Server_Certificate", index: n }),
    }
    let cert_permanent = version & 0x8000_0000 == 0;
    let settings = ServerSecurity { method, level, cert_type, cert_permanent, certs };
    Ok(Block::ServerSecurity(settings))
}

/// The next X.509 certificate of several.
fn certificate<'a>(all: &mut Record<'a>) -> Result<&'a [u8], RecordFault> {
    let mut one = Record::new("X509_Cert_Data", all.rest());
    let n = bounded(&mut one, "cert_len", MAX_CERTIFICATE)?;
    let cert = one.upto("cert", n as usize)?;
    all.at += one.at;
    Ok(cert)
}

/// Skips a proprietary certificate.
fn proprietary(data: &[u8]) -> Result<(), RecordFault> {
    let mut r = Record::new("Server_Proprietary_Cert", data);
    let n = u16_le(r.upto("public_key_blob_length", 12)?, 10);
    let start = r.at;
    r.string("public_key_blob", n.into())?;
    let mut key = Record::new("Public_Key_Blob", &data[start..r.at]);
    key.upto("magic", 4)?;
    let n = u32_le(key.upto("public_exponent", 12)?, 0);
    if n > MAX_CERTIFICATE {
        return Err(RecordFault::Value("Public_Key_Blob:key_length"));
    }
    key.string("modulus", n.into())?;
    let n = u16_le(r.upto("signature_blob_length", 4)?, 2);
    r.string("signature_blob", n.into())?;
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn block(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut out = kind.to_le_bytes().to_vec();
        out.extend_from_slice(&(body.len() as u16 + 4).to_le_bytes());
        out.extend_from_slice(body);
        out
    }

    fn utf16(text: &str, len: usize) -> Vec<u8> {
        let mut out: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        out.resize(len, 0);
        out
    }

    /// A client's settings after their tag.
    pub(in super::super) fn client_settings() -> Vec<u8> {
        let mut core = b"\x04\0\x08\0\x00\x05\x00\x04\0\0\0\0\x09\x04\0\0\x28\x0a\0\0".to_vec();
        core.extend(utf16("HOST", 32));
        core.extend_from_slice(&[0; 76 + 8]);
        core.extend_from_slice(b"\x10\0\0\0\0\0");
        core.extend(utf16("1234", 64));
        let mut out = b"\x82\x01\x94\x04\x01\x01\x04\x01\x01\x01\x01\xff".to_vec();
        out.extend_from_slice(b"\x30\x01a\x30\x01b\x30\x01c\x04\x82\x01\x33");
        out.extend_from_slice(b"\0\x01k\0\0\0\0\0\0\0\0\0\0Duca\0\0");
        out.extend(block(0xc001, &core));
        out.extend(block(0xc003, b"\x02\0\0\0rdpdr\0\0\0\0\0\0\0rdpsnd\0\0\0\0\0\0"));
        out
    }

    /// A server's settings after their tag, with a proprietary certificate.
    pub(in super::super) fn server_settings() -> Vec<u8> {
        let mut security = b"\x02\0\0\0\x02\0\0\0\x20\0\0\0\x24\0\0\0".to_vec();
        security.extend_from_slice(&[7; 32]);
        security.extend_from_slice(b"\x01\0\0\0\x01\0\0\0\x01\0\0\0\x06\0\x10\0RSA1\0\0\0\0");
        security.extend_from_slice(&[0; 8]);
        security.extend_from_slice(b"\x08\0\0\0");
        let mut out = b"\x82\x01\x45\x0a\x01\0\x02\x01\0\x30\x01a\x04\x82\x01\x1f".to_vec();
        out.extend_from_slice(b"\0\x01k\0\0\0\0\x01\x01\0\0\0\0McDn\0\0");
        out.extend(block(0x0c01, b"\x04\0\x08\0"));
        out.extend(block(0x0c02, &security));
        out
    }

    #[test]
    fn of_the_client() {
        let data = client_settings();
        let all: Vec<_> = client(&data).unwrap().collect();
        let Ok(Block::ClientCore(core)) = &all[0] else { panic!("no core") };
        assert_eq!((core.width, core.height, core.depth), (1280, 1024, 16));
        assert_eq!((core.keyboard, core.build), (1033, 2600));
        let channels: Vec<(&[u8], u32)> = vec![(b"rdpdr\0\0\0", 0), (b"rdpsnd\0\0", 0)];
        assert_eq!(all[1], Ok(Block::ClientNetwork(channels)));
        let cut: Vec<_> = client(&data[..data.len() - 1]).unwrap().collect();
        let error = |e: &RecordFault| e.to_string().replace(crate::support::BINPAC, "");
        let Some(Err(e)) = cut.last() else { panic!("whole") };
        assert_eq!(error(e), "out_of_bound: Data_Block:block: 32 > 31");
        let Err(e) = client(&data[..5]) else { panic!("whole") };
        assert_eq!(error(&e), "out_of_bound: ASN1Encoding:content: 3 > 2");
        let duca = data.windows(4).position(|w| w == b"Duca").unwrap();
        let mut other = data.clone();
        other[duca] = b'd';
        assert_eq!(client(&other).map(|_| ()), Err(RecordFault::Syntax));
    }

    #[test]
    fn of_the_server() {
        let data = server_settings();
        let (result, blocks) = server(&data).unwrap();
        assert_eq!(result, 0);
        let all: Vec<_> = blocks.collect();
        let Ok(Block::ServerSecurity(s)) = &all[1] else { panic!("no security") };
        assert_eq!((s.method, s.level, s.cert_type, s.cert_permanent), (2, 2, 1, true));
    }

    #[test]
    fn certificates_before_one_that_is_cut() {
        let mut body = b"\0\0\0\0\0\0\0\0\0\0\0\0\x13\0\0\0".to_vec();
        body.extend_from_slice(b"\x02\0\0\0\x02\0\0\0\x02\0\0\0ab\x09\0\0\0c");
        let data = block(0x0c02, &body);
        let all: Vec<_> = Blocks(&data).collect();
        let [Ok(Block::TruncatedSecurity(certs, e))] = &all[..] else { panic!("whole") };
        assert_eq!(certs, &[b"ab"]);
        assert!(e.to_string().ends_with("X509_Cert_Data:cert: 13 > 5"), "{e}");
    }
}
