//! Captures to measure on, generated for every run.

use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use gannet_capture::Precision;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use gannet_synth::Trace;
use gannet_synth::traffic;
use gannet_synth::traffic::Kind;

/// Seed of all generated traffic.
const SEED: u64 = 0x0067_616e_6e65_7421;

/// A temporary folder of captures, removed when this is dropped.
pub(super) struct Traffic {
    folder: PathBuf,
    /// All kinds of traffic in one capture.
    pub(super) mixed: PathBuf,
    /// The same capture in other formats, and compressed.
    pub(super) pcapng: PathBuf,
    pub(super) gzip: PathBuf,
    pub(super) zstd: PathBuf,
    pub(super) lz4: PathBuf,
    /// A capture of small packets only.
    pub(super) dns: PathBuf,
    /// One capture for each kind.
    pub(super) kinds: Vec<(Kind, PathBuf)>,
}

impl Traffic {
    /// Generates captures of about `size` conversations each.
    pub(super) fn make(size: usize) -> anyhow::Result<Self> {
        let folder = std::env::temp_dir().join(format!("gannet-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let at = |name: &str| folder.join(name);
        // From here on the folder is removed on errors, too.
        let mut traffic = Self {
            mixed: at("mixed.pcap"),
            pcapng: at("mixed.pcapng"),
            gzip: at("mixed.pcap.gz"),
            zstd: at("mixed.pcap.zst"),
            lz4: at("mixed.pcap.lz4"),
            dns: at("dns.pcap"),
            kinds: Kind::ALL.map(|kind| (kind, at(&format!("{kind}.pcap")))).to_vec(),
            folder,
        };
        let mixed = traffic::mixed(size, SEED);
        for path in [&traffic.mixed, &traffic.pcapng, &traffic.gzip, &traffic.zstd, &traffic.lz4] {
            write(path, &mixed)?;
        }
        for (kind, path) in &mut traffic.kinds {
            write(path, &traffic::of(*kind, count(*kind, size), SEED))?;
        }
        Ok(traffic)
    }

    /// The temporary folder, where logs may be written.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        // On an error the files remain in the system's folder for temporary files.
        std::fs::remove_dir_all(&self.folder).unwrap_or_default();
    }
}

/// The number of conversations of a kind that gives about as many packets as the other kinds have.
pub(super) fn count(kind: Kind, size: usize) -> usize {
    match kind {
        Kind::Dns | Kind::Ntp | Kind::Ping | Kind::Scan => size * 8,
        Kind::Dhcp | Kind::Snmp | Kind::Sip => size * 3,
        Kind::Http | Kind::Tls | Kind::Mqtt => size,
        Kind::Smtp | Kind::Ssh | Kind::Ftp => size / 2,
        Kind::Bulk => size / 10,
    }
    .max(1)
}

fn write(path: &Path, trace: &Trace) -> anyhow::Result<()> {
    // Microseconds, so that every tool reads it.
    let options = WriteOptions { precision: Some(Precision::Micros), ..WriteOptions::default() };
    let mut writer = Writer::create(path, options)?;
    trace.write(&mut writer)?;
    writer.finish()?;
    Ok(())
}
