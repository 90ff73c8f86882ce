//! Logs that are written only on request: the assets of a network, and the quality of the capture.
//!
//! These logs contain conclusions from traffic: hosts, services and certificates ([`known`]),
//! software ([`software`]), capture loss ([`loss`]), unknown protocols ([`unknown`]), counts of
//! weirds ([`weirds`]). In Zeek they are optional policy scripts.
//!
//! [`Env`](crate::Env) has a [`Policy`] only if one of these logs is enabled, and the policy has only the state
//! that the enabled ones need. Analyzers report facts to the [`View`]; without a policy that costs
//! one comparison.

pub mod known;
pub mod loss;
pub mod software;
pub mod unknown;
pub mod weirds;

pub use self::known::CertificateRow;
pub use self::known::HostRow;
pub use self::known::ModbusRow;
pub use self::known::ServiceRow;
pub use self::loss::LossRow;
pub use self::software::SoftwareRow;
pub use self::unknown::UnknownRow;
pub use self::weirds::StatsRow;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Time;
use gannet_log::Logs;
use gannet_log::Selection;

use self::software::DetectedSoftware;
use crate::local_nets::LocalNets;

/// Hosts that the asset logs include.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Assets {
    /// Hosts of local networks.
    #[default]
    Local,
    /// Hosts of all other networks.
    Remote,
    /// All.
    All,
}

/// The state of the enabled logs.
#[derive(Debug, Default)]
pub struct Policy {
    hosts: Option<known::Hosts>,
    services: Option<known::Services>,
    certificates: Option<known::Certificates>,
    modbus: Option<known::Modbus>,
    software: Option<software::Tracker>,
    loss: Option<loss::Meter>,
    unknown: Option<unknown::Sampler>,
}

impl Policy {
    /// Creates the state of the selected logs; `None` if none is selected.
    pub fn new(selection: &Selection) -> Option<Box<Self>> {
        let policy = Self {
            hosts: selection.wants::<HostRow>().then(Default::default),
            services: selection.wants::<ServiceRow<'_>>().then(Default::default),
            certificates: selection.wants::<CertificateRow<'_>>().then(Default::default),
            modbus: selection.wants::<ModbusRow>().then(Default::default),
            software: selection.wants::<SoftwareRow<'_>>().then(Default::default),
            loss: selection.wants::<LossRow>().then(Default::default),
            unknown: selection.wants::<UnknownRow<'_>>().then(Default::default),
        };
        let Self { hosts, services, certificates, modbus, software, loss, unknown } = &policy;
        let any = hosts.is_some()
            || services.is_some()
            || certificates.is_some()
            || modbus.is_some()
            || software.is_some()
            || loss.is_some()
            || unknown.is_some();
        any.then(|| Box::new(policy))
    }

    /// Counts an acknowledgement that a complete connection received; `gap` says whether
    /// acknowledged data is missing.
    pub fn acked(&mut self, gap: bool) {
        if let Some(meter) = &mut self.loss {
            meter.acked(gap);
        }
    }
}

/// A policy with the environment that it needs.
pub struct View<'a> {
    policy: &'a mut Policy,
    logs: &'a mut Logs,
    local: &'a LocalNets,
    assets: Assets,
}

impl<'a> View<'a> {
    /// Creates a view.
    pub(crate) fn new(
        policy: &'a mut Policy,
        logs: &'a mut Logs,
        local: &'a LocalNets,
        assets: Assets,
    ) -> Self {
        Self { policy, logs, local, assets }
    }
}

impl View<'_> {
    fn tracks(&self, host: Addr) -> bool {
        match self.assets {
            Assets::Local => self.local.contain(host),
            Assets::Remote => !self.local.contain(host),
            Assets::All => true,
        }
    }

    /// Notes that two hosts completed a TCP handshake.
    pub fn established(&mut self, now: Time, id: &ConnId) {
        for host in [id.orig_h, id.resp_h] {
            let tracked = self.policy.hosts.is_some() && self.tracks(host);
            if let (Some(hosts), true) = (&mut self.policy.hosts, tracked) {
                hosts.seen(self.logs, now, host);
            }
        }
    }

    /// Notes the protocols of a connection, when one is recognized or the connection ends. Returns
    /// whether a service was logged.
    pub fn service(&mut self, now: Time, seen: &known::ObservedService<'_>) -> bool {
        if self.policy.services.is_none() || !seen.counts() || !self.tracks(seen.host) {
            return false;
        }
        if let Some(services) = &mut self.policy.services {
            services.seen(self.logs, now, seen);
        }
        true
    }

    /// Notes a certificate that a server presented.
    pub fn certificate(&mut self, now: Time, seen: &known::PresentedCertificate<'_>) {
        if self.policy.certificates.is_some()
            && self.tracks(seen.host)
            && let Some(certificates) = &mut self.policy.certificates
        {
            certificates.seen(self.logs, now, seen);
        }
    }

    /// Notes a Modbus message between two hosts.
    pub fn modbus(&mut self, now: Time, id: &ConnId) {
        if let Some(modbus) = &mut self.policy.modbus {
            modbus.seen(self.logs, now, id);
        }
    }

    /// Notes software that identified itself.
    pub fn software(&mut self, now: Time, found: &DetectedSoftware<'_>) {
        if self.policy.software.is_some()
            && self.tracks(found.host)
            && let Some(software) = &mut self.policy.software
        {
            software.on_detected(self.logs, now, found);
        }
    }

    /// Notes software of a mail client, if the connecting host is tracked.
    pub fn relayed_software(&mut self, now: Time, relay: Addr, found: &DetectedSoftware<'_>) {
        // Mail from outside may name arbitrary hosts.
        if self.local.contain(relay) {
            self.software(now, found);
        }
    }

    /// Notes a packet of an unknown protocol.
    pub fn unknown(&mut self, now: Time, seen: &unknown::Seen<'_>) {
        if let Some(unknown) = &mut self.policy.unknown {
            unknown.seen(self.logs, now, seen);
        }
    }

    /// Advances to the time of the next packet.
    pub fn arrive(&mut self, packet: Time) {
        if let Some(services) = &mut self.policy.services {
            services.arrive(self.logs, packet);
        }
        if let Some(meter) = &mut self.policy.loss {
            meter.arrive(self.logs, packet);
        }
    }

    /// Logs pending rows at the end of input.
    pub fn finish(&mut self, now: Time) {
        if let Some(services) = &mut self.policy.services {
            services.finish(self.logs, now);
        }
        if let Some(meter) = &mut self.policy.loss {
            meter.finish(self.logs, now);
        }
    }
}
