//! GSSAPI tokens, and the authentication messages in them.
#![no_main]

use gannet_protocols::gssapi::message;
use gannet_protocols::gssapi::message::Part;
use gannet_protocols::krb::message::ParsedFacts;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = message::parse(data, |part| match part {
        Part::Ntlm(token) => drop(gannet_protocols::ntlm::message::parse(token)),
        Part::Kerberos(token) => {
            drop(gannet_protocols::krb::message::parse(token, &mut ParsedFacts::default()));
        }
        Part::State(_) | Part::LongNumber(_) => {}
    });
});
