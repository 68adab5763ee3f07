//! `webcachesim`: "time id size" per line, separated by spaces, as in traces of web caches and CDNs.
//!
//! Source: Berger, Sitaraman, Harchol-Balter: "AdaptSize", NSDI 2017, and the manual of its simulator; the format of
//! LRB's (Song et al., NSDI 2020) has further numbers after these. The manuals call the time arbitrary: it has no unit,
//! only an order, and is not carried. Sizes are bytes; an object may change its size.

use super::columns::spaced;
use super::first_lines;
use crate::lines::{LineParser, LineReader, Lines};
use crate::number::{shown, whole};
use crate::{Carries, Evidence, Format, Record};

const CARRIES: Carries = Carries { objects: true, ..Carries::NOTHING };

pub(crate) const FORMAT: Format = Format {
    name: "webcachesim",
    summary: "\"time id size\" per line; the time has no unit and is not used",
    source: "Berger et al., AdaptSize, NSDI 2017",
    carries: CARRIES,
    detect: |head| {
        let numbers = |line: &[u8]| spaced(line).count() == 3 && spaced(line).all(|field| whole(field, "").is_ok());
        let times: Vec<&[u8]> = super::lines_of(head).take(8).filter_map(|line| spaced(line).next()).collect();
        let ordered = times.is_sorted_by_key(|time| whole(time, "").unwrap_or(0));
        Evidence::form(
            ordered && first_lines(head, numbers),
            "three whole numbers per line, of which the first never decreases",
        )
    },
    open: |source| Ok(Box::new(LineReader::new(Lines::new(source), WebCacheSim))),
};

struct WebCacheSim;

impl LineParser for WebCacheSim {
    fn carries(&self) -> Carries {
        CARRIES
    }

    fn unit_bytes(&self) -> u64 {
        4096
    }

    fn sizes_vary(&self) -> bool {
        true
    }

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        let mut fields = spaced(line);
        let Some(time) = fields.next() else { return Ok(None) };
        let (Some(id), Some(size)) = (fields.next(), fields.next()) else {
            return Err(format!("{} has {} columns; allowed: time id size", shown(line), spaced(line).count()));
        };
        whole(time, "time")?;
        Ok(Some(Record { offset: whole(id, "id")?, size: whole(size, "size")?, ..Record::default() }))
    }
}
