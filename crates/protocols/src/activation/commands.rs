//! Applies commands of scripts about analyzers.

use gannet_base::Interval;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_event::Command;

use super::MAX_SCHEDULED;
use super::Scheduled;
use super::number;
use super::usual_port;
use crate::Env;
use crate::Tag;
use crate::ports::is_likely_server_port;

impl Env {
    /// Whether a port is likely to be that of a server of a known protocol.
    #[inline(always)]
    pub fn is_likely_server_port(&self, proto: Proto, port: u16) -> bool {
        match &self.activation.likely {
            None => is_likely_server_port(proto, port),
            Some(likely) => likely.contains(&(number(proto), port)),
        }
    }

    /// Drops expectations that ended before `now`, if there are many.
    fn drop_expired_schedules(&mut self, now: Time) {
        let scheduled = &mut self.activation.scheduled;
        if scheduled.len() >= MAX_SCHEDULED {
            scheduled.retain(|_, all| {
                all.retain(|(_, until)| *until >= now);
                !all.is_empty()
            });
        }
        if scheduled.len() >= MAX_SCHEDULED {
            scheduled.clear();
            self.weirds.net(&mut self.logs, now, "too_many_scheduled_analyzers", "");
        }
    }

    /// Delivers more of a file that scripts read.
    fn input(&mut self, now: Time, name: &str, data: &[u8], ends: bool) {
        let id = match self.inputs.get(name) {
            Some(id) => *id,
            None => {
                let id = self.files.start_input(now, name);
                self.files.raise_new(&mut self.logs, id, None);
                self.inputs.insert(name.to_owned(), id);
                id
            }
        };
        self.files.data(&mut self.logs, now, id, data);
        if ends {
            self.files.end(&mut self.logs, now, id);
            self.inputs.remove(name);
        }
        self.report_files(now);
    }

    /// Applies a command of scripts about analyzers.
    pub fn apply_command(&mut self, now: Time, command: Command) {
        let activation = &mut self.activation;
        match command {
            Command::Port { analyzer, proto, port, on } => {
                if let Some(tag) = Tag::from_zeek_name(&analyzer) {
                    activation.register(tag, proto, port, on);
                }
            }
            Command::Enable { analyzer: None, on: false } => {
                activation.disabled =
                    Tag::ALL.iter().copied().filter(|t| *t != Tag::Detector).collect();
            }
            Command::Enable { analyzer: None, on: true } => activation.disabled.clear(),
            Command::Enable { analyzer: Some(analyzer), on } if analyzer.starts_with("Files::") => {
                self.files.enable(&analyzer, on);
            }
            Command::Enable { analyzer: Some(analyzer), on } => {
                if let Some(tag) = Tag::from_zeek_name(&analyzer) {
                    if on {
                        activation.disabled.remove(&tag);
                    } else {
                        activation.disabled.insert(tag);
                    }
                }
            }
            Command::Detect { analyzer, on } => {
                if let Some(tag) = Tag::from_zeek_name(&analyzer)
                    && let Some(tags) = &mut activation.detected
                {
                    if on {
                        tags.insert(tag);
                    } else {
                        tags.remove(&tag);
                    }
                }
            }
            Command::Schedule { orig, resp, port, proto, analyzer, timeout } => {
                if let Some(tag) = Tag::from_zeek_name(&analyzer) {
                    self.drop_expired_schedules(now);
                    let key = Scheduled { orig, resp, port, proto: number(proto) };
                    self.activation.schedule_one_more(key, tag, now + timeout);
                }
            }
            Command::LikelyPorts(ports) => {
                let all = ports.into_iter().map(|(proto, port)| (number(proto), port));
                activation.likely = Some(all.collect());
            }
            Command::TunnelPorts(all) => {
                let known = |(port, name): (u16, String)| Some((port, usual_port(&name)?));
                activation.tunnel_ports = Some(all.into_iter().filter_map(known).collect());
            }
            Command::Upgrades(all) => {
                let known =
                    |(protocol, name): (_, String)| Some((protocol, Tag::from_zeek_name(&name)?));
                activation.upgrades = Some(all.into_iter().filter_map(known).collect());
            }
            Command::PipeNames(all) => activation.pipe_names = Some(all.into_iter().collect()),
            Command::Setting { name, value } if self.weirds.sampling.set(name, value) => {
                self.files.sampling().set(name, value);
            }
            Command::WeirdNames { exempt, global } => {
                self.weirds.sampling.set_names(&exempt, &global);
                self.files.sampling().set_names(&exempt, &global);
            }
            Command::Setting { name, value } => {
                activation.settings.insert(name, value);
                let max = usize::try_from(value).unwrap_or(usize::MAX);
                match name {
                    // 0 means unlimited.
                    "SMB::max_pending_messages" if max == 0 => {
                        self.pending.set(Tag::Smb, usize::MAX);
                    }
                    "SMB::max_pending_messages" => self.pending.set(Tag::Smb, max),
                    "POP3::max_pending_commands" if max == 0 => {
                        self.pending.set(Tag::Pop3, usize::MAX);
                    }
                    "POP3::max_pending_commands" => self.pending.set(Tag::Pop3, max),
                    "default_file_bof_buffer_size" => self.files.set_sniff_bytes(max),
                    "default_file_timeout_interval" => {
                        let nanos = i64::try_from(value).unwrap_or(i64::MAX);
                        self.files.set_timeout(Interval::from_nanos(nanos));
                    }
                    "Files::enable_reassembler" => self.files.set_reassembly(value != 0),
                    "Files::reassembly_buffer_size" => self.files.set_max_buffered(value),
                    "dpd_ignore_ports" => activation.ignores_ports = value != 0,
                    "dpd_buffer_size" => activation.detection.set_bytes(max),
                    "dpd_max_packets" => activation.detection.set_chunks(value),
                    "DCE_RPC::max_cmd_reassembly" => self.pending.set(Tag::DceRpc, max),
                    _ => {}
                }
            }
            Command::Contents { source, data, ends } => self.input(now, &source, &data, ends),
            Command::Connection { .. }
            | Command::File { .. }
            | Command::Filter(_)
            | Command::AskToDiscard
            | Command::WatchAll
            | Command::PacketThresholds(_)
            | Command::SkipBytes { .. }
            | Command::Unchecked(_)
            | Command::Stop => {}
        }
    }
}
