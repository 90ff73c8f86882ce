//! Options that change queries before they are sent: EDNS and TSIG.

use std::fs;

use anyhow::Context as _;
use gannet_replay::Edns;
use gannet_replay::Rewrite;
use gannet_replay::Subnet;
use gannet_replay::Tsig;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// EDNS: payload size of queries, in bytes
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(512..))]
    edns_size: Option<u16>,
    /// EDNS: set DO in queries, so that answers have records of DNSSEC
    #[arg(long)]
    dnssec_ok: bool,
    /// EDNS: the network of the client in queries, like 192.0.2.0/24 (RFC 7871)
    #[arg(long, value_name = "NET")]
    client_subnet: Option<Subnet>,
    /// Remove EDNS from queries
    #[arg(long, conflicts_with_all = ["edns_size", "dnssec_ok", "client_subnet"])]
    no_edns: bool,
    /// Sign queries with a key (TSIG): NAME:ALGORITHM:SECRET, the secret in base64, or @FILE with that text
    #[arg(long, value_name = "KEY")]
    tsig: Option<String>,
}

impl Args {
    /// The changes; an error is one of the key.
    pub(super) fn rewrite(&self) -> anyhow::Result<Rewrite> {
        let Self { edns_size: size, dnssec_ok, client_subnet: subnet, no_edns, .. } = *self;
        let edns = if no_edns {
            Edns::Remove
        } else if size.is_some() || dnssec_ok || subnet.is_some() {
            Edns::Set { size, dnssec_ok, subnet }
        } else {
            Edns::Keep
        };
        Ok(Rewrite { edns, tsig: self.tsig.as_deref().map(key).transpose()? })
    }
}

fn key(text: &str) -> anyhow::Result<Tsig> {
    let Some(path) = text.strip_prefix('@') else { return Ok(text.parse()?) };
    let text = fs::read_to_string(path).with_context(|| path.to_owned())?;
    text.parse().with_context(|| path.to_owned())
}

/// Arguments of the command for a report, without the secret of `--tsig`.
pub(super) fn without_secrets(params: impl Iterator<Item = String>) -> Vec<String> {
    let mut is_key = false;
    let shown = |param: String| {
        let was_key = std::mem::replace(&mut is_key, param == "--tsig");
        if !was_key && !param.starts_with("--tsig=") {
            return param;
        }
        match param.rsplit_once(':') {
            Some((name, _)) => format!("{name}:..."),
            None => param,
        }
    };
    params.map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_no_secret() {
        let params =
            ["--tsig", "k:hmac-sha256:c2Vj", "a:b", "--tsig=k:hmac-sha1:c2Vj", "--tsig", "@f"];
        assert_eq!(
            without_secrets(params.into_iter().map(str::to_owned)),
            ["--tsig", "k:hmac-sha256:...", "a:b", "--tsig=k:hmac-sha1:...", "--tsig", "@f"]
        );
    }
}
