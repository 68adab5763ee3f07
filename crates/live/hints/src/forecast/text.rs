//! Which pages of a program or library are mapped as executable: since Linux 6.17, the kernel reads ahead of a fault
//! there, and around a fault elsewhere.

use std::fs::File;
use std::ops::Range;

use object::elf::{FileHeader32, FileHeader64, PF_X, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache, ReadRef};

use crate::list::PAGE_BYTES;

/// The pages of each segment that is loaded as executable, from the headers of an ELF file; none for any other file.
pub(super) fn text(file: &File) -> Vec<Range<u64>> {
    let data = &ReadCache::new(file);
    segments::<FileHeader64<Endianness>, _>(data)
        .or_else(|| segments::<FileHeader32<Endianness>, _>(data))
        .unwrap_or_default()
}

fn segments<'a, H: FileHeader, R: ReadRef<'a>>(data: R) -> Option<Vec<Range<u64>>> {
    let header = H::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let each = header.program_headers(endian, data).ok()?.iter();
    let executed = each.filter(|each| each.p_type(endian) == PT_LOAD && each.p_flags(endian).contains(PF_X));
    let pages = |segment: &H::ProgramHeader| {
        let (first, bytes): (u64, u64) = (segment.p_offset(endian).into(), segment.p_filesz(endian).into());
        first / PAGE_BYTES..first.saturating_add(bytes).div_ceil(PAGE_BYTES)
    };
    Some(executed.map(pages).collect())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn they_are_those_of_this_very_program() {
        let program = std::env::current_exe().expect("it has a name");
        let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux");
        // Addresses, permissions, offset in the file, device, inode, path.
        let mapped = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let is_text = words[1].contains('x') && words.last().is_some_and(|path| program.ends_with(path));
            let number = |text: &str| u64::from_str_radix(text, 16).expect("hexadecimal");
            let (low, high) = words[0].split_once('-').expect("a range");
            let first = number(words[2]) / PAGE_BYTES;
            is_text.then(|| first..first + (number(high) - number(low)) / PAGE_BYTES)
        };
        let mapped: Vec<Range<u64>> = maps.lines().filter_map(mapped).collect();
        assert!(!mapped.is_empty());
        assert_eq!(text(&File::open(&program).expect("it is there")), mapped);
    }

    #[test]
    fn others_have_none() {
        let program = std::fs::read(std::env::current_exe().expect("it has a name")).expect("it is there");
        for contents in [&b""[..], b"#!/bin/sh\n", &program[..20], &program[..70]] {
            let mut file = tempfile(contents.len());
            file.write_all(contents).expect("room");
            assert_eq!(text(&file), [], "{} bytes", contents.len());
        }
    }

    fn tempfile(number: usize) -> File {
        let path = std::env::temp_dir().join(format!("headstart-text-{}-{number}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).expect("a file");
        std::fs::remove_file(&path).expect("it is there");
        file
    }
}
