//! Filters that do not apply to a link type, such as `inbound` on Ethernet.

use gannet_capture::LinkType;
use gannet_filter::Filter;

use crate::Error;

/// Checks that a filter was applicable to at least one of `packets` packets. Returns a message for each link type to
/// which it does not apply.
///
/// # Errors
/// [`Error::NoAnswer`] if the filter was applicable to none of the packets.
pub fn check_answered(filter: &Filter, packets: u64) -> Result<Vec<String>, Error> {
    let all = filter.unanswered();
    if let Some(first) = all.first()
        && all.iter().map(|entry| entry.packets).sum::<u64>() >= packets
    {
        let why = first.error.message().to_owned();
        return Err(Error::NoAnswer { link_type: LinkType(first.link_type), why });
    }
    let remark_of = |entry: &gannet_filter::Unanswered| {
        let (link_type, why) = (LinkType(entry.link_type), entry.error.message());
        let count = entry.packets;
        format!("the filter does not apply to {count} of {packets} packets ({link_type}): {why}")
    };
    Ok(all.iter().map(remark_of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ETHERNET: u16 = 1;
    const COOKED: u16 = 113;

    #[test]
    fn a_filter_that_applies_to_no_packet_is_an_error() {
        let filter = Filter::parse("inbound").unwrap();
        assert!(!filter.matches(ETHERNET, &[0; 60], 60));
        let error = check_answered(&filter, 1).unwrap_err().to_string();
        assert!(error.starts_with("filter: Ethernet: "), "{error}");
        filter.matches(COOKED, &[0; 60], 60);
        let remarks = check_answered(&filter, 2).unwrap();
        assert!(remarks[0].contains("1 of 2 packets (Ethernet)"), "{remarks:?}");
    }

    #[test]
    fn a_filter_without_packets_is_not_an_error() {
        let filter = Filter::parse("inbound").unwrap();
        assert_eq!(check_answered(&filter, 0).unwrap(), [""; 0]);
    }
}
