use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Vector;

gannet_log::row! {
    /// Files that TFTP transfers, a row each.
    pub struct TftpRow<'a> = "tftp", opt_in {
        /// When the request was seen.
        ts: Time = "ts",
        /// Connection of the request.
        uid: Uid = "uid",
        /// Its ends.
        id: ConnId = "id",
        /// Whether the client writes the file.
        wrq: bool = "wrq",
        /// Name of the file.
        fname: &'a [u8] = "fname",
        /// Mode: `netascii`, `octet` or `mail`.
        mode: &'a [u8] = "mode",
        /// Connection of the contents.
        uid_data: Option<Uid> = "uid_data",
        /// Bytes that were sent, each part once.
        size: u64 = "size",
        /// Number of the last part that was sent.
        block_sent: u64 = "block_sent",
        /// Number of the last part that arrived.
        block_acked: u64 = "block_acked",
        /// Why the transfer failed, as a number.
        error_code: Option<u64> = "error_code",
        /// Why the transfer failed, in words.
        error_msg: Option<&'a [u8]> = "error_msg",
        /// Options that the server accepted: `name=value`.
        options: Option<Vector<&'a [u8]>> = "options",
    }
}
