//! The target `oracleGeneral`: one 24-byte record per block, with the time of its next access.
//!
//! The next access is only known in a backward pass. We therefore write the records without it first, then read the
//! file backwards, a mebibyte at a time, and complete the records in place. Memory: the distinct blocks, not the
//! references. As in libCacheSim, "next" is the index of the next access, counted from 1, or -1 for none. Blocks of
//! several files are mapped to one number: file * 2^40 + block.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use headstart_types::KeyError;

use super::output::{writing, Packer, Pending};
use super::ConvertSummary;
use crate::formats::oracle_general::RECORD_BYTES;
use crate::hash::Build;
use crate::info::blocks_of;
use crate::limits::check_distinct_of_all;
use crate::{Carries, ErrorPosition, Record, RecordReader, TraceError};

const BLOCK_BITS: u32 = 40;
/// Records per step of the backward pass.
const CHUNK_RECORDS: u64 = 43_690;

pub(super) fn write(
    reader: &mut dyn RecordReader,
    path: &Path,
    block_bytes: u64,
) -> Result<ConvertSummary, TraceError> {
    if block_bytes == 0 {
        return Err(KeyError::new("block_size", "is 0", "1 byte or more").into());
    }
    let (pending, mut file) = Pending::create(path)?;
    let (requests, records) = forward(reader, &mut file, path, block_bytes)?;
    backward(&mut file, records, &pending)?;
    if Packer::compresses(path) {
        let (packed_pending, packed_file) = Pending::create(path)?;
        pack(file, path, packed_file).map_err(|error| packed_pending.error(error))?;
        packed_pending.place()?;
    } else {
        pending.place()?;
    }
    Ok(ConvertSummary { requests, records, lost: lost(reader.carries()), ..ConvertSummary::default() })
}

fn lost(carries: Carries) -> Vec<&'static str> {
    let kept_not = [
        (carries.time, "fractions of a second in times"),
        (carries.duration, "durations"),
        (carries.think, "think times"),
        (carries.processes, "processes"),
        (carries.files, "file table"),
        (carries.writes, "the distinction of reads and writes"),
        (carries.addresses, "addresses"),
    ];
    kept_not.iter().filter(|(carried, _)| *carried).map(|(_, what)| *what).collect()
}

/// Writes all records without their next access.
fn forward(
    reader: &mut dyn RecordReader,
    file: &mut File,
    path: &Path,
    block_bytes: u64,
) -> Result<(u64, u64), TraceError> {
    let io = |source| writing(path, source);
    let carries = reader.carries();
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let (mut requests, mut records) = (0u64, 0u64);
    let mut batch = Vec::new();
    while reader.read(&mut batch)? {
        for record in &batch {
            requests += 1;
            let misfit = |problem: String| TraceError::Bad {
                file: path.to_owned(),
                place: ErrorPosition::Record(requests),
                problem,
            };
            let (first, count, size) = match carries.objects {
                true => (record.offset, 1, record.size),
                false => {
                    let (first, count) = blocks_of(record, block_bytes, reader)?;
                    (first, count, block_bytes)
                }
            };
            for index in 0..count {
                let bytes = packed(record, first + index, size, carries.files).map_err(misfit)?;
                out.write_all(&bytes).map_err(io)?;
            }
            records += count;
        }
    }
    out.flush().map_err(io)?;
    Ok((requests, records))
}

/// One record without its next access.
fn packed(record: &Record, block: u64, size: u64, files: bool) -> Result<[u8; RECORD_BYTES], String> {
    let time_s = record.time.0 / 1_000_000_000;
    let time_s = u32::try_from(time_s).map_err(|_| format!("time {time_s} s is too large; allowed: below 2^32 s"))?;
    let size = u32::try_from(size).map_err(|_| format!("size {size} is too large; allowed: below 2^32 bytes"))?;
    let mut object = block;
    if files {
        if block >> BLOCK_BITS != 0 || record.file >> (u64::BITS - BLOCK_BITS) != 0 {
            let problem = format!("block {block} of file {} is too large", record.file);
            return Err(format!("{problem}; allowed: blocks below 2^40, files below 2^24"));
        }
        object |= u64::from(record.file) << BLOCK_BITS;
    }
    let mut bytes = [0; RECORD_BYTES];
    bytes[..4].copy_from_slice(&time_s.to_le_bytes());
    bytes[4..12].copy_from_slice(&object.to_le_bytes());
    bytes[12..16].copy_from_slice(&size.to_le_bytes());
    bytes[16..].copy_from_slice(&(-1i64).to_le_bytes());
    Ok(bytes)
}

/// Completes the records from the last to the first.
fn backward(file: &mut File, records: u64, pending: &Pending) -> Result<(), TraceError> {
    let io = |error| pending.error(error);
    // By object: the index, from 1, of the access found last, which is the next access of the one found next.
    let mut next: HashMap<u64, i64, Build> = HashMap::default();
    let mut chunk = Vec::new();
    let mut end = records;
    while end > 0 {
        let start = end.saturating_sub(CHUNK_RECORDS);
        chunk.resize((end - start) as usize * RECORD_BYTES, 0);
        file.seek(SeekFrom::Start(start * RECORD_BYTES as u64)).map_err(io)?;
        file.read_exact(&mut chunk).map_err(io)?;
        check_distinct_of_all(next.len() as u64)?;
        for (bytes, number) in chunk.chunks_exact_mut(RECORD_BYTES).rev().zip((start + 1..=end).rev()) {
            let mut object = [0; 8];
            object.copy_from_slice(&bytes[4..12]);
            if let Some(later) = next.insert(u64::from_le_bytes(object), number as i64) {
                bytes[16..].copy_from_slice(&later.to_le_bytes());
            }
        }
        file.seek(SeekFrom::Start(start * RECORD_BYTES as u64)).map_err(io)?;
        file.write_all(&chunk).map_err(io)?;
        end = start;
    }
    Ok(())
}

/// Compresses the complete file.
fn pack(mut plain: File, path: &Path, packed: File) -> io::Result<()> {
    plain.seek(SeekFrom::Start(0))?;
    let mut out = Packer::new(path, packed)?;
    io::copy(&mut BufReader::with_capacity(1 << 20, plain), &mut out)?;
    out.finish()
}
