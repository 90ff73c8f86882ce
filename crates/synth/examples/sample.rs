//! Writes the sample capture: `sample FILE`.

use gannet_capture::Error;
use gannet_capture::Precision;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "sample.pcap".into());
    // Microseconds, so that every tool reads it.
    let options = WriteOptions { precision: Some(Precision::Micros), ..WriteOptions::default() };
    let mut writer = Writer::create(path, options)?;
    gannet_synth::sample().write(&mut writer)?;
    writer.finish()
}
