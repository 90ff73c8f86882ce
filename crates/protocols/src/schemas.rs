//! The schemas of all logs of this crate.

use gannet_base::Time;
use gannet_event::Sinks;
use gannet_log::Cut;
use gannet_log::Schema;

use crate::descriptor::Log;
use crate::descriptor::logs as protocol_logs;
use crate::failure;
use crate::policy;
use crate::weird;
use crate::weird::Weirds;

/// Logs of this crate that belong to no protocol.
const OTHERS: &[Log] = &[
    Log::of::<failure::AnalyzerRow<'_>>().stream("Analyzer::Logging::LOG"),
    Log::of::<policy::CertificateRow<'_>>().stream("Known::CERTS_LOG"),
    Log::of::<policy::HostRow>().stream("Known::HOSTS_LOG"),
    Log::of::<policy::LossRow>().stream("CaptureLoss::LOG"),
    Log::of::<policy::ModbusRow>().stream("Known::MODBUS_LOG"),
    Log::of::<policy::ServiceRow<'_>>().stream("Known::SERVICES_LOG"),
    Log::of::<policy::SoftwareRow<'_>>().stream("Software::LOG"),
    Log::of::<policy::StatsRow<'_>>().stream("WeirdStats::LOG"),
    Log::of::<policy::UnknownRow<'_>>().stream("UnknownProtocol::LOG"),
    Log::of::<weird::NoticeRow<'_>>().stream("Notice::LOG"),
    Log::of::<weird::WeirdRow<'_>>().stream("Weird::LOG"),
];

fn logs() -> impl Iterator<Item = &'static Log> {
    protocol_logs().chain(OTHERS)
}

/// The schemas of all logs of this crate, in no particular order.
pub fn schemas() -> Vec<Schema> {
    logs().map(|log| (log.schema)()).collect()
}

/// Reports a row that was cut to the limits of its log stream.
#[cold]
pub(crate) fn report_cut(weirds: &mut Weirds, logs: &mut Sinks, now: Time, path: &str, cut: Cut) {
    let stream = stream_name(path);
    if cut.strings {
        weirds.net(logs, now, "log_string_field_truncated", &stream);
    }
    if cut.lists {
        weirds.net(logs, now, "log_container_field_truncated", &stream);
    }
}

/// The name of a log's stream in Zeek's scripts.
fn stream_name(path: &str) -> String {
    match path {
        // Other crates declare these.
        "conn" => return "Conn::LOG".to_owned(),
        "files" => return "Files::LOG".to_owned(),
        _ => {}
    }
    let declared = logs().find(|log| log.path == path).and_then(|log| log.stream);
    declared.map_or_else(|| format!("{}::LOG", path.to_ascii_uppercase()), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_have_the_names_of_scripts() {
        assert_eq!(stream_name("mqtt_publish"), "MQTT::PUBLISH_LOG");
        assert_eq!(stream_name("http"), "HTTP::LOG");
        assert_eq!(stream_name("known_certs"), "Known::CERTS_LOG");
    }
}
