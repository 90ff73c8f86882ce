//! ONC RPC: one conversation with the portmapper, MOUNT or NFS, and the headers of calls and replies.
#![no_main]

use gannet_protocols::rpc::message::Reply;
use gannet_protocols::rpc::xdr::Xdr;

gannet_fuzz_support::started_protocols!(
    Portmapper Mount Nfs,
    |data| Reply::parse(&mut Xdr::new(data)),
);
