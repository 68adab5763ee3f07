//! Codes of SCSI commands. Source: INCITS T10, SCSI Block Commands (SBC-3), table of operation codes.

use super::operation::Operation;

/// The operation of a command; `None` for other codes.
pub(super) fn operation(code: u16) -> Option<Operation> {
    Some(match code {
        // READ (6), (10), (12), (16)
        0x08 | 0x28 | 0xa8 | 0x88 => Operation::Read,
        // WRITE (6), (10), (12), (16); WRITE AND VERIFY (10), (12), (16)
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => Operation::Write,
        // TEST UNIT READY, REQUEST SENSE, INQUIRY, MODE SENSE, START STOP UNIT, READ CAPACITY, VERIFY, SYNCHRONIZE
        // CACHE,
        // WRITE SAME, UNMAP, LOG SENSE, RESERVE and RELEASE, READ CAPACITY (16), REPORT LUNS
        0x00 | 0x03 | 0x12 | 0x1a | 0x5a | 0x1b | 0x25 | 0x2f | 0x8f | 0x35 | 0x91 | 0x41 | 0x93 | 0x42 | 0x4d
        | 0x5e | 0x5f | 0x9e | 0xa0 => Operation::Other,
        _ => return None,
    })
}
