//! Headers of portable executables (Microsoft PE/COFF specification), parsed incrementally.
//!
//! The headers of a file have five parts: the DOS header, the DOS program, the file header, the
//! optional header and the section headers. [`Parser`] buffers only the bytes of the current part;
//! the facts about the file grow with each complete part. Neither the DOS nor the PE signature is
//! checked: the parser is selected by the type of the file.

/// Length of the DOS header in octets.
const DOS_HEADER: usize = 64;

/// Length of the PE signature and the file header in octets.
const FILE_HEADER: usize = 24;

/// Length of a section header in octets.
const SECTION_HEADER: usize = 40;

/// A DOS program must be shorter than this, in octets; a longer one is not accepted as part of an
/// executable.
const MAX_DOS_PROGRAM: u32 = 4 * 1024 * 1024;

/// Facts from the headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// The target machine: `I386`; `unknown-475` for an unknown number.
    pub machine: Option<String>,
    /// Compile time, in seconds since 1970.
    pub compiled: Option<u32>,
    /// The required operating system.
    pub os: Option<String>,
    /// The required subsystem.
    pub subsystem: Option<String>,
    /// Whether it is an executable, not an object file.
    pub is_exe: bool,
    /// Whether it is a 64-bit image.
    pub is_64bit: bool,
    /// Whether it supports address space layout randomization.
    pub uses_aslr: bool,
    /// Whether it supports data execution prevention.
    pub uses_dep: bool,
    /// Whether code integrity checks are enforced.
    pub uses_code_integrity: bool,
    /// Whether it uses structured exception handling.
    pub uses_seh: bool,
    /// Whether it has an import table.
    pub has_import_table: Option<bool>,
    /// Whether it has an export table.
    pub has_export_table: Option<bool>,
    /// Whether it has a certificate table.
    pub has_cert_table: Option<bool>,
    /// Whether it has debug data.
    pub has_debug_data: Option<bool>,
    /// Names of the sections, up to the first zero byte of each.
    pub section_names: Option<Vec<Vec<u8>>>,
}

impl Default for Info {
    fn default() -> Self {
        Self {
            machine: None,
            compiled: None,
            os: None,
            subsystem: None,
            is_exe: true,
            is_64bit: true,
            uses_aslr: false,
            uses_dep: false,
            uses_code_integrity: false,
            uses_seh: true,
            has_import_table: None,
            has_export_table: None,
            has_cert_table: None,
            has_debug_data: None,
            section_names: None,
        }
    }
}

/// Why bytes are not valid headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeError {
    /// The offset of the PE header is within the DOS header, or too large.
    BadOffset,
    /// The optional header is shorter than its fields and tables.
    ShortOptionalHeader,
}

impl std::fmt::Display for PeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            // The wording of Zeek.
            Self::BadOffset => {
                "Binpac exception: binpac exception: &enforce violation : DOS_Header:AddressOfNewExeHeader"
            }
            Self::ShortOptionalHeader => "the optional header is too short",
        })
    }
}

impl std::error::Error for PeError {}

/// Parses headers incrementally.
#[derive(Clone, Debug, Default)]
pub struct Parser {
    part: Part,
    /// Octets of the current part: at most an optional header or all section headers.
    buffer: Vec<u8>,
    info: Info,
    sections: u16,
    /// Whether to store parts unchanged, which only events need.
    pub(crate) stores_parts: bool,
    /// Whether to store the DOS program as well.
    pub(crate) stores_program: bool,
    /// Complete parts, with their kinds.
    pub(crate) stored_parts: Vec<(Kind, Vec<u8>)>,
}

/// Kind of a stored part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    DosHeader,
    DosProgram,
    FileHeader,
    OptionalHeader,
    SectionHeaders,
}

/// The part that is parsed next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    DosHeader,
    /// With the number of remaining octets.
    DosProgram(usize),
    FileHeader,
    /// With the number of its octets.
    OptionalHeader(usize),
    SectionHeaders,
    Done,
}

impl Parser {
    /// A parser at the first byte of a file.
    pub fn new() -> Self {
        Self::default()
    }

    /// The facts known so far; to be logged if [`Info::machine`] is set.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Whether all headers were parsed, or parsing was stopped.
    pub fn is_done(&self) -> bool {
        self.part == Part::Done
    }

    /// Parses the next bytes of the file. After the last header, more bytes have no effect.
    ///
    /// # Errors
    /// If the bytes cannot be headers; then the parser is done.
    pub fn update(&mut self, data: &[u8]) -> Result<(), PeError> {
        let result = self.read(data);
        if result.is_err() {
            self.part = Part::Done;
        }
        if self.is_done() {
            self.buffer = Vec::new();
        }
        result
    }

    fn read(&mut self, mut data: &[u8]) -> Result<(), PeError> {
        loop {
            let need = match self.part {
                Part::Done => return Ok(()),
                Part::DosProgram(size) if self.stores_program => size,
                Part::DosProgram(left) => {
                    let skip = left.min(data.len());
                    data = &data[skip..];
                    if skip < left {
                        self.part = Part::DosProgram(left - skip);
                        return Ok(());
                    }
                    self.part = Part::FileHeader;
                    continue;
                }
                Part::DosHeader => DOS_HEADER,
                Part::FileHeader => FILE_HEADER,
                Part::OptionalHeader(size) => size,
                Part::SectionHeaders => usize::from(self.sections) * SECTION_HEADER,
            };
            let take = (need - self.buffer.len()).min(data.len());
            self.buffer.extend_from_slice(&data[..take]);
            data = &data[take..];
            if self.buffer.len() < need {
                return Ok(());
            }
            let part = std::mem::take(&mut self.buffer);
            let kind = match self.part {
                Part::DosHeader => Some(Kind::DosHeader),
                Part::FileHeader => Some(Kind::FileHeader),
                Part::OptionalHeader(_) => Some(Kind::OptionalHeader),
                Part::SectionHeaders => Some(Kind::SectionHeaders),
                Part::DosProgram(_) => Some(Kind::DosProgram),
                Part::Done => None,
            };
            self.complete(&part)?;
            if self.stores_parts
                && let Some(kind) = kind
            {
                self.stored_parts.push((kind, part));
            }
        }
    }

    /// Parses a complete part, and selects the next one.
    fn complete(&mut self, data: &[u8]) -> Result<(), PeError> {
        let fields = Fields(data);
        self.part = match self.part {
            Part::DosHeader => {
                let offset = fields.u32(60).unwrap_or(0);
                let program = offset.checked_sub(64).filter(|&program| program < MAX_DOS_PROGRAM);
                let program = program.and_then(|program| usize::try_from(program).ok());
                Part::DosProgram(program.ok_or(PeError::BadOffset)?)
            }
            Part::FileHeader => self.file_header(&fields),
            Part::OptionalHeader(_) => {
                self.optional_header(&fields).ok_or(PeError::ShortOptionalHeader)?;
                Part::SectionHeaders
            }
            Part::SectionHeaders => {
                self.section_headers(data);
                Part::Done
            }
            Part::DosProgram(_) => Part::FileHeader,
            Part::Done => Part::Done,
        };
        Ok(())
    }

    fn file_header(&mut self, fields: &Fields<'_>) -> Part {
        let field = |at| fields.u16(at).unwrap_or(0);
        self.info.machine = Some(machine_name(field(4)));
        self.sections = field(6);
        self.info.compiled = fields.u32(8);
        let size = field(20);
        self.info.is_exe = size > 0;
        const MACHINE_32BIT: u16 = 0x0100;
        self.info.is_64bit = field(22) & MACHINE_32BIT == 0;
        if size > 0 { Part::OptionalHeader(usize::from(size)) } else { Part::SectionHeaders }
    }

    /// `None` if the header is too short.
    fn optional_header(&mut self, fields: &Fields<'_>) -> Option<()> {
        let magic = fields.u16(0)?;
        // Offsets of fields that depend on the magic: word sizes differ, and the PE32+ form lacks
        // one field. With an unknown magic, both that field and the sizes of stack and heap are
        // missing.
        let (alignment, words) = match magic {
            0x10b => (32, 16),
            0x20b => (32, 32),
            _ => (28, 0),
        };
        let version = (fields.u16(alignment + 8)?, fields.u16(alignment + 10)?);
        let subsystem = fields.u16(alignment + 36)?;
        let flags = fields.u16(alignment + 38)?;
        let tables = alignment + 40 + words + 8;
        let count = usize::try_from(fields.u32(tables - 4)?).ok()?;
        if count > (fields.0.len() - tables) / 8 {
            return None;
        }
        match magic {
            // PE32 and PE32+.
            0x10b | 0x20b => {}
            // ROM images: Zeek recognizes them, then fails on fields that they do not have.
            0x107 => return None,
            _ => return Some(()),
        }
        let has_table = |number: usize| {
            Some(number < count && fields.u32(tables + number * 8 + 4).is_some_and(|size| size > 0))
        };
        let info = &mut self.info;
        info.os = Some(os_name(version));
        info.subsystem = Some(subsystem_name(subsystem));
        info.uses_aslr = flags & 0x0040 != 0;
        info.uses_code_integrity = flags & 0x0080 != 0;
        info.uses_dep = flags & 0x0100 != 0;
        info.uses_seh = flags & 0x0400 == 0;
        info.has_export_table = has_table(0);
        info.has_import_table = has_table(1);
        info.has_cert_table = has_table(4);
        info.has_debug_data = has_table(6);
        Some(())
    }

    fn section_headers(&mut self, data: &[u8]) {
        if !self.info.is_exe || self.sections == 0 {
            return;
        }
        let names = data.chunks_exact(SECTION_HEADER).map(|header| {
            let name = &header[..8];
            name.split(|&byte| byte == 0).next().unwrap_or_default().to_vec()
        });
        self.info.section_names = Some(names.collect());
    }
}

/// Little-endian numbers by offset.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u16(&self, at: usize) -> Option<u16> {
        let octets = self.0.get(at..at + 2)?;
        Some(u16::from_le_bytes(octets.try_into().ok()?))
    }

    fn u32(&self, at: usize) -> Option<u32> {
        let octets = self.0.get(at..at + 4)?;
        Some(u32::from_le_bytes(octets.try_into().ok()?))
    }
}

/// Name of a machine.
fn machine_name(number: u16) -> String {
    let name = match number {
        0x0000 => "UNKNOWN",
        0x014c => "I386",
        0x0166 => "R4000",
        0x0169 => "WCEMIPSV2",
        0x01a2 => "SH3",
        0x01a3 => "SH3DSP",
        0x01a6 => "SH4",
        0x01a8 => "SH5",
        0x01c0 => "ARM",
        0x01c2 => "THUMB",
        0x01c4 => "ARMNT",
        0x01d3 => "AM33",
        0x01f0 => "POWERPC",
        0x01f1 => "POWERPCFP",
        0x0200 => "IA64",
        0x0266 => "MIPS16",
        0x0366 => "MIPSFPU",
        0x0466 => "MIPSFPU16",
        0x0ebc => "EBC",
        0x8664 => "AMD64",
        0x9041 => "M32R",
        0xaa64 => "ARM64",
        _ => return format!("unknown-{number}"),
    };
    name.to_owned()
}

/// Name of a subsystem.
fn subsystem_name(number: u16) -> String {
    let name = match number {
        0 => "UNKNOWN",
        1 => "NATIVE",
        2 => "WINDOWS_GUI",
        3 => "WINDOWS_CUI",
        7 => "POSIX_CUI",
        9 => "WINDOWS_CE_GUI",
        10 => "EFI_APPLICATION",
        11 => "EFI_BOOT_SERVICE_DRIVER",
        12 => "EFI_RUNTIME_DRIVER",
        13 => "EFI_ROM",
        14 => "XBOX",
        _ => return format!("unknown-{number}"),
    };
    name.to_owned()
}

/// Name of an operating system version, major and minor.
fn os_name((major, minor): (u16, u16)) -> String {
    let name = match (major, minor) {
        (10, 0) => "Windows 10",
        (6, 4) => "Windows 10 Technical Preview",
        (6, 3) => "Windows 8.1 or Server 2012 R2",
        (6, 2) => "Windows 8 or Server 2012",
        (6, 1) => "Windows 7 or Server 2008 R2",
        (6, 0) => "Windows Vista or Server 2008",
        (5, 2) => "Windows XP x64 or Server 2003",
        (5, 1) => "Windows XP",
        (5, 0) => "Windows 2000",
        (4, 90) => "Windows Me",
        (4, 10) => "Windows 98",
        (4, 0) => "Windows 95 or NT 4.0",
        (3, 51) => "Windows NT 3.51",
        (3, 50) => "Windows NT 3.5",
        (3, 2) => "Windows 3.2",
        (3, 11) => "Windows for Workgroups 3.11",
        (3, 10) => "Windows 3.1 or NT 3.1",
        (3, 0) => "Windows 3.0",
        (2, 11) => "Windows 2.11",
        (2, 10) => "Windows 2.10",
        (2, 0) => "Windows 2.0",
        (1, 4) => "Windows 1.04",
        (1, 3) => "Windows 1.03",
        (1, 1) => "Windows 1.01",
        (1, 0) => "Windows 1.0",
        _ => return format!("unknown-{major}.{minor}"),
    };
    name.to_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A PE32+ program with two sections, and import and debug tables.
    pub(crate) fn program() -> Vec<u8> {
        let mut file = vec![0; 64 + 16];
        file[..2].copy_from_slice(b"MZ");
        file[60] = 80;
        file.extend(b"PE\0\0\x64\x86\x02\0\x40\xa2\x60\x62");
        file.extend([0; 8]);
        let optional = 112 + 7 * 8;
        file.extend([optional, 0, 0x22, 0]);
        let mut header = vec![0; usize::from(optional)];
        header[..2].copy_from_slice(&[0x0b, 0x02]);
        header[40] = 10;
        header[68] = 3;
        header[70..72].copy_from_slice(&0x0140u16.to_le_bytes());
        header[108] = 7;
        header[112 + 8 + 4] = 1;
        header[112 + 6 * 8 + 4] = 1;
        file.extend(header);
        for name in [b".text\0\0\0", b".verylon"] {
            file.extend(name);
            file.extend([0; 32]);
        }
        file
    }

    #[test]
    fn a_program_in_pieces() {
        let file = program();
        let mut parser = Parser::new();
        for piece in file.chunks(7) {
            parser.update(piece).unwrap();
        }
        assert!(parser.is_done());
        let info = parser.info();
        assert_eq!(info.machine.as_deref(), Some("AMD64"));
        assert_eq!(info.compiled, Some(0x6260_a240));
        assert_eq!(info.os.as_deref(), Some("Windows 10"));
        assert_eq!(info.subsystem.as_deref(), Some("WINDOWS_CUI"));
        assert!(info.is_exe && info.is_64bit && info.uses_aslr && info.uses_dep && info.uses_seh);
        assert!(!info.uses_code_integrity);
        assert_eq!((info.has_import_table, info.has_export_table), (Some(true), Some(false)));
        assert_eq!((info.has_cert_table, info.has_debug_data), (Some(false), Some(true)));
        assert_eq!(info.section_names, Some(vec![b".text".to_vec(), b".verylon".to_vec()]));
    }

    #[test]
    fn the_dos_program_is_kept_for_its_event() {
        let file = program();
        let programs = |stores_program| {
            let mut parser = Parser { stores_parts: true, stores_program, ..Parser::new() };
            for piece in file.chunks(7) {
                parser.update(piece).unwrap();
            }
            assert!(parser.is_done());
            parser.stored_parts.retain(|(kind, _)| *kind == Kind::DosProgram);
            parser.stored_parts
        };
        assert!(programs(false).is_empty());
        assert_eq!(programs(true), [(Kind::DosProgram, file[64..80].to_vec())]);
    }

    #[test]
    fn objects_have_no_optional_header() {
        let mut file = vec![0; 64];
        file[60] = 64;
        file.extend([0, 0, 0, 0, 0xdb, 0x01]);
        file.extend([0; 18]);
        let mut parser = Parser::new();
        parser.update(&file).unwrap();
        assert!(parser.is_done());
        let machine = Some("unknown-475".to_owned());
        assert_eq!(
            *parser.info(),
            Info { machine, compiled: Some(0), is_exe: false, ..Info::default() }
        );
    }

    #[test]
    fn invalid_headers() {
        let mut file = program();
        file[60] = 63;
        assert_eq!(Parser::new().update(&file), Err(PeError::BadOffset));
        let mut file = program();
        file[80 + 24 + 108] = 8;
        let mut parser = Parser::new();
        assert_eq!(parser.update(&file), Err(PeError::ShortOptionalHeader));
        assert!(parser.is_done() && parser.info().machine.is_some() && parser.info().os.is_none());
    }

    #[test]
    fn rom_images_are_rejected() {
        let with_magic = |magic: u8| {
            let mut file = program();
            file[80 + 24] = magic;
            file[80 + 24 + 1] = 1;
            // Without tables.
            file[80 + 24 + 72..][..4].fill(0);
            let mut parser = Parser::new();
            (parser.update(&file), parser.info().section_names.is_some())
        };
        assert_eq!(with_magic(0x07), (Err(PeError::ShortOptionalHeader), false));
        assert_eq!(with_magic(0x08), (Ok(()), true));
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(at in 0usize..300, byte in any::<u8>(), size in 1usize..100) {
            let mut file = program();
            if let Some(slot) = file.get_mut(at) {
                *slot = byte;
            }
            let mut whole = Parser::new();
            let _ = whole.update(&file);
            let mut pieces = Parser::new();
            for piece in file.chunks(size) {
                let _ = pieces.update(piece);
            }
            prop_assert_eq!(whole.info(), pieces.info());
        }
    }
}
