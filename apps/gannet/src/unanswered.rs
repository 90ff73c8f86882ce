//! Filters that do not apply to packets of some link type: `inbound` on Ethernet, `arp and ip`.

use std::path::PathBuf;

use gannet_capture::Format;
use gannet_capture::LinkType;
use gannet_capture::Reader;
use gannet_filter::Filter;
use gannet_filter::Unanswered;

use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// The reason why a filter does not apply to a capture whose only link type is known before it is read: a single pcap file.
pub(crate) fn in_advance(filter: &Filter, files: &[PathBuf]) -> Option<String> {
    let [file] = files else { return None };
    if !file.is_file() {
        return None;
    }
    let reader = Reader::open(file).ok()?;
    match reader.interfaces() {
        [interface] if reader.format() == Format::Pcap => refusal(filter, interface.link_type),
        _ => None,
    }
}

/// The reason why a filter does not apply to packets of a link type.
pub(crate) fn refusal(filter: &Filter, link_type: LinkType) -> Option<String> {
    let error = filter.engine(link_type.0).err()?;
    Some(format!("{link_type}: {error}"))
}

/// Reports packets that a filter does not apply to, out of `packets` that were read: an error if these are all of
/// them, else a warning for each link type.
pub(crate) fn report(filter: &Filter, packets: u64, terminal: &Terminal) -> Outcome {
    let all = filter.unanswered();
    let sum: u64 = all.iter().map(|unanswered| unanswered.packets).sum();
    for Unanswered { link_type, packets: count, error } in &all {
        let link_type = LinkType(*link_type);
        if sum >= packets {
            terminal.error(&format_args!("{link_type}: {error}"));
        } else {
            let why = error.message();
            terminal.warning(&format_args!(
                "the filter does not apply to {count} of {packets} packets ({link_type}): {why}"
            ));
        }
    }
    if sum > 0 && sum >= packets { Outcome::NoCapture } else { Outcome::Done }
}
