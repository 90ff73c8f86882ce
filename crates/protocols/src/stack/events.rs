//! Events of analyzers: confirmations and violations of protocols.

use gannet_base::Time;
use gannet_base::Uid;
use gannet_event::AnalyzerId;
use gannet_event::Connection;
use gannet_event::FileRef;

use crate::Tag;

gannet_event::enumeration!(Tag = "AllAnalyzers::Tag", |tag| tag.zeek_name());

gannet_event::record! {
    /// Where a protocol was confirmed.
    pub struct ConfirmationInfo = "AnalyzerConfirmationInfo" {
        /// The connection.
        c: Option<Connection> = "c",
        /// The file.
        f: Option<FileRef> = "f",
        /// Number of the analyzer.
        aid: Option<AnalyzerId> = "aid",
    }
}

gannet_event::record! {
    /// Where and how a protocol was violated.
    pub struct ViolationInfo<'a> = "AnalyzerViolationInfo" {
        /// Description.
        reason: &'a [u8] = "reason",
        /// The connection.
        c: Option<Connection> = "c",
        /// The file.
        f: Option<FileRef> = "f",
        /// Number of the analyzer.
        aid: Option<AnalyzerId> = "aid",
        /// The first bytes of the violating data.
        data: Option<&'a [u8]> = "data",
    }
}

gannet_event::events! {
    crate::events::module::STACK;

    /// File analysis requests the handle of the file that an analyzer's data belongs to. Handlers
    /// run immediately.
    pub struct GetFileHandle = "get_file_handle" {
        /// The analyzer.
        tag: Tag = "tag",
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sends the data.
        is_orig: bool = "is_orig",
    }

    /// A connection begins with an analyzer that its port or an announcement selects.
    pub struct AnalyzerPlanned = "gannet::analyzer_planned", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The analyzer.
        atype: Tag = "atype",
        /// Number of the analyzer.
        aid: AnalyzerId = "aid",
    }

    /// A connection begins: numbers of its analyzers without a protocol.
    pub struct AnalyzersNumbered = "gannet::analyzers_numbered", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Number of its transport analyzer.
        transport: AnalyzerId = "transport",
        /// Number of its size analyzer, which counts bytes.
        sizes: AnalyzerId = "sizes",
    }

    /// An analyzer passes on a file, from its beginning or after the file timed out.
    pub struct FileStarts = "gannet::file_starts", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The analyzer.
        atype: Tag = "atype",
        /// Whether the originator sends the file.
        is_orig: bool = "is_orig",
        /// Identifier of the file in the logs, if it is analyzed.
        fuid: Option<Uid> = "fuid",
    }

    /// An analyzer confirmed its protocol.
    pub struct AnalyzerConfirmationInfo = "analyzer_confirmation_info" {
        /// The analyzer.
        atype: Tag = "atype",
        /// Where it was confirmed.
        info: ConfirmationInfo = "info",
    }

    /// An analyzer stopped because of a violation.
    pub struct AnalyzerFailed<'a> = "analyzer_failed", scripted {
        /// Time of the row.
        ts: Time = "ts",
        /// The analyzer.
        atype: Tag = "atype",
        /// Where and how the protocol was violated.
        info: ViolationInfo<'a> = "info",
    }

    /// A connection begins that another one announced.
    pub struct ScheduledAnalyzerApplied = "scheduled_analyzer_applied" {
        /// The connection.
        c: Connection = "c",
        /// The analyzer that was announced.
        a: Tag = "a",
    }

    /// The data of an analyzer violates its protocol.
    pub struct AnalyzerViolationInfo<'a> = "analyzer_violation_info" {
        /// The analyzer.
        atype: Tag = "atype",
        /// Where and how the protocol was violated.
        info: ViolationInfo<'a> = "info",
    }
}
