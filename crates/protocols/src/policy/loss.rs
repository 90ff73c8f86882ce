//! capture_loss.log: an estimate of the traffic that the capture missed.
//!
//! A host acknowledges only data that it received. An acknowledgement of data that is not in the
//! capture shows a loss in the capture; the share of such acknowledgements is an estimate of the
//! loss. Only connections established in both directions count.

use gannet_base::Interval;
use gannet_base::Time;
use gannet_log::Logs;

use crate::weird::NoticeRow;

gannet_log::row! {
    /// Estimate of capture loss: after the first minute, then every 15 minutes.
    pub struct LossRow = "capture_loss", opt_in {
        /// Time of the measurement.
        ts: Time = "ts",
        /// Length of the measured interval.
        ts_delta: Interval = "ts_delta",
        /// Name of the measuring process: always `zeek`, as for a process outside of a cluster.
        peer: &'static str = "peer",
        /// Number of acknowledgements of data that is not in the capture.
        gaps: u64 = "gaps",
        /// Number of all acknowledgements of new data.
        acks: u64 = "acks",
        /// `gaps` in percent of `acks`.
        percent_lost: f64 = "percent_lost",
    }
}

const FIRST: Interval = Interval::from_secs(60);
const LATER: Interval = Interval::from_secs(900);
/// Percentage of loss from which a notice is raised.
const TOO_MUCH: f64 = 10.0;
/// Minimum number of acknowledgements; fewer raise a notice.
const TOO_FEW: u64 = 1;

/// Counters, and the time at which they are logged.
#[derive(Debug, Default)]
pub(super) struct Meter {
    acks: u64,
    gaps: u64,
    /// Time at which counting began, and time at which the counters are logged.
    span: Option<(Time, Time)>,
}

impl Meter {
    pub(super) fn acked(&mut self, gap: bool) {
        self.acks += 1;
        self.gaps += u64::from(gap);
    }

    /// Advances to the time of the next packet.
    pub(super) fn arrive(&mut self, logs: &mut Logs, packet: Time) {
        match self.span {
            None => self.span = Some((packet, packet + FIRST)),
            Some((_, due)) if packet >= due => {
                self.log_counts(logs, packet);
                self.span = Some((packet, packet + LATER));
            }
            Some(_) => {}
        }
    }

    /// Logs the last counters at the end of input.
    pub(super) fn finish(&mut self, logs: &mut Logs, now: Time) {
        self.log_counts(logs, now);
    }

    fn log_counts(&mut self, logs: &mut Logs, now: Time) {
        let Some((since, _)) = self.span else { return };
        let (acks, gaps) = (std::mem::take(&mut self.acks), std::mem::take(&mut self.gaps));
        let percent_lost = if acks == 0 { 0.0 } else { 100.0 * gaps as f64 / acks as f64 };
        if percent_lost >= TOO_MUCH {
            let msg = format!(
                "The capture loss script detected an estimated loss rate above {percent_lost:.3}%"
            );
            logs.write(&NoticeRow::plain(now, "CaptureLoss::Too_Much_Loss", &msg));
        }
        if acks < TOO_FEW {
            let msg =
                format!("Only observed {acks} TCP ACKs and was expecting at least {TOO_FEW}.");
            logs.write(&NoticeRow::plain(now, "CaptureLoss::Too_Little_Traffic", &msg));
        }
        let ts_delta = now - since;
        logs.write(&LossRow { ts: now, ts_delta, peer: "zeek", gaps, acks, percent_lost });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_log::Options;
    use gannet_log::Selection;

    #[test]
    fn after_a_minute_then_every_quarter_and_at_the_end() {
        let selection = Selection::of(["capture_loss", "notice"]);
        let mut logs = Logs::new(Options { selection, ..Options::default() });
        let mut meter = Meter::default();
        let at = Time::from_secs;
        meter.arrive(&mut logs, at(100));
        for n in 0..8 {
            meter.acked(n == 0);
        }
        meter.arrive(&mut logs, at(159));
        meter.arrive(&mut logs, at(170));
        meter.acked(false);
        meter.arrive(&mut logs, at(1069));
        meter.arrive(&mut logs, at(1070));
        meter.finish(&mut logs, at(1100));
        let rows = |path| String::from_utf8_lossy(logs.pending(path)).into_owned();
        let expected = "170.000000\t70.000000\tzeek\t1\t8\t12.5\n\
                        1070.000000\t900.000000\tzeek\t0\t1\t0.0\n\
                        1100.000000\t30.000000\tzeek\t0\t0\t0.0\n";
        assert!(rows("capture_loss").ends_with(expected), "{}", rows("capture_loss"));
        let notices = rows("notice");
        assert!(
            notices.contains("CaptureLoss::Too_Much_Loss\tThe capture loss script detected an")
        );
        assert!(notices.contains("CaptureLoss::Too_Little_Traffic\tOnly observed 0 TCP ACKs"));
    }
}
