//! Headers of portable executables as events.

use gannet_base::Time;
use gannet_event::FileRef;
use gannet_event::SetOf;
use gannet_event::Sinks;

use crate::events::DosHeader;
use crate::events::FileHeader;
use crate::events::OptionalHeader;
use crate::events::PeDosCode;
use crate::events::PeDosHeader;
use crate::events::PeFileHeader;
use crate::events::PeOptionalHeader;
use crate::events::PeSectionHeader;
use crate::events::SectionHeader;
use crate::pe::Kind;

/// Length of a section header in octets.
const SECTION_HEADER: usize = 40;

/// Little-endian numbers by offset; zero past the end.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
    }

    fn u8(&self, at: usize) -> u64 {
        u64::from(self.array::<1>(at)[0])
    }

    fn u16(&self, at: usize) -> u64 {
        u16::from_le_bytes(self.array(at)).into()
    }

    fn u32(&self, at: usize) -> u64 {
        u32::from_le_bytes(self.array(at)).into()
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }
}

/// The flags that are set in the lowest `bits` bits of a number.
fn flags(number: u64, bits: u32) -> SetOf<u64> {
    SetOf((0..bits).map(|bit| 1 << bit).filter(|flag| number & flag != 0).collect())
}

/// Raises the events of a part of the headers.
pub(crate) fn raise(sinks: &mut Sinks, f: FileRef, kind: Kind, data: &[u8]) {
    let d = Fields(data);
    match kind {
        Kind::DosHeader if sinks.events.wants::<PeDosHeader<'_>>() => {
            let h = dos_header(&d);
            sinks.events.raise(&PeDosHeader { f, h });
        }
        Kind::DosProgram => sinks.events.raise(&PeDosCode { f, code: data }),
        Kind::FileHeader if sinks.events.wants::<PeFileHeader>() => {
            let h = FileHeader {
                machine: d.u16(4),
                ts: Time::from_secs(d.u32(8) as i64),
                sym_table_ptr: d.u32(12),
                num_syms: d.u32(16),
                optional_header_size: d.u16(20),
                characteristics: flags(d.u16(22), 16),
            };
            sinks.events.raise(&PeFileHeader { f, h });
        }
        Kind::OptionalHeader if sinks.events.wants::<PeOptionalHeader>() => {
            if let Some(h) = optional_header(&d) {
                sinks.events.raise(&PeOptionalHeader { f, h });
            }
        }
        Kind::SectionHeaders if sinks.events.wants::<PeSectionHeader<'_>>() => {
            for header in data.chunks_exact(SECTION_HEADER) {
                let h = section_header(header);
                sinks.events.raise(&PeSectionHeader { f, h });
            }
        }
        _ => {}
    }
}

fn dos_header<'a>(d: &Fields<'a>) -> DosHeader<'a> {
    DosHeader {
        signature: d.0.get(..2).unwrap_or_default(),
        used_bytes_in_last_page: d.u16(2),
        file_in_pages: d.u16(4),
        num_reloc_items: d.u16(6),
        header_in_paragraphs: d.u16(8),
        min_extra_paragraphs: d.u16(10),
        max_extra_paragraphs: d.u16(12),
        init_relative_ss: d.u16(14),
        init_sp: d.u16(16),
        checksum: d.u16(18),
        init_ip: d.u16(20),
        init_relative_cs: d.u16(22),
        addr_of_reloc_table: d.u16(24),
        overlay_num: d.u16(26),
        oem_id: d.u16(36),
        oem_info: d.u16(38),
        addr_of_new_exe_header: d.u32(60),
    }
}

/// PE32 and PE32+; `None` for others.
fn optional_header(d: &Fields<'_>) -> Option<OptionalHeader> {
    let is_wide = match d.u16(0) {
        0x10b => false,
        0x20b => true,
        _ => return None,
    };
    let tables = if is_wide { 112 } else { 96 };
    let sizes = d.0.get(tables..).unwrap_or_default().chunks_exact(8);
    let count = d.u32(tables - 4) as usize;
    Some(OptionalHeader {
        magic: d.u16(0),
        major_linker_version: d.u8(2),
        minor_linker_version: d.u8(3),
        size_of_code: d.u32(4),
        size_of_init_data: d.u32(8),
        size_of_uninit_data: d.u32(12),
        addr_of_entry_point: d.u32(16),
        base_of_code: d.u32(20),
        base_of_data: (!is_wide).then(|| d.u32(24)),
        image_base: if is_wide { d.u64(24) } else { d.u32(28) },
        section_alignment: d.u32(32),
        file_alignment: d.u32(36),
        os_version_major: d.u16(40),
        os_version_minor: d.u16(42),
        major_image_version: d.u16(44),
        minor_image_version: d.u16(46),
        major_subsys_version: d.u16(48),
        minor_subsys_version: d.u16(50),
        size_of_image: d.u32(56),
        size_of_headers: d.u32(60),
        checksum: d.u32(64),
        subsystem: d.u16(68),
        dll_characteristics: flags(d.u16(70), 16),
        table_sizes: sizes.take(count).map(|table| Fields(table).u32(4)).collect(),
    })
}

fn section_header(header: &[u8]) -> SectionHeader<'_> {
    let d = Fields(header);
    let name = header.get(..8).unwrap_or_default();
    SectionHeader {
        name: name.split(|byte| *byte == 0).next().unwrap_or_default(),
        virtual_size: d.u32(8),
        virtual_addr: d.u32(12),
        size_of_raw_data: d.u32(16),
        ptr_to_raw_data: d.u32(20),
        ptr_to_relocs: d.u32(24),
        ptr_to_line_nums: d.u32(28),
        num_of_relocs: d.u16(32),
        num_of_line_nums: d.u16(34),
        characteristics: flags(d.u32(36), 32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        assert_eq!(flags(0x2022, 16), SetOf(vec![2, 32, 8192]));
        let mut section = b".text\0\0\0".to_vec();
        section.resize(SECTION_HEADER, 0);
        section[36..].copy_from_slice(&[0x20, 0, 0, 0x60]);
        let h = section_header(&section);
        assert_eq!(h.name, b".text");
        assert_eq!(h.characteristics, SetOf(vec![0x20, 0x2000_0000, 0x4000_0000]));
        let mut optional = vec![0; 112 + 16];
        optional[..2].copy_from_slice(&[0x0b, 2]);
        (optional[31], optional[108], optional[116], optional[124]) = (1, 2, 99, 220);
        let h = optional_header(&Fields(&optional)).unwrap();
        assert_eq!((h.image_base, h.base_of_data), (1 << 56, None));
        assert_eq!(h.table_sizes, [99, 220]);
        assert!(optional_header(&Fields(&[7, 1])).is_none());
    }
}
