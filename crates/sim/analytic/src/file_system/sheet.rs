//! Parameters by name, each a number or a column of numbers, for evaluating many at once.
//!
//! A [`Sheet`] holds one number for each of [`FIELDS`]; missing ones follow from the others (the read-ahead's limit
//! from the cluster). [`Sheet::evaluate`] overrides them with the columns' numbers, row by row, and writes the terms of
//! each row. There is no allocation per row; the mean seek times of each number of streams are computed once.

use headstart_types::{Bytes, KeyError, Nanos};

use super::equations::{response, TERMS};
use super::parameters::{Disk, FileSystem, Form, Parameters, Prefetch, Scheduler, Work};
use super::seeks::Seeks;

/// The unit of a number written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// "64KiB"; numbers are bytes.
    Size,
    /// "0.5ms"; numbers are nanoseconds.
    Time,
    /// "20MB/s"; numbers are bytes per second.
    Rate,
    /// No unit.
    Plain,
}

/// The numeric parameters, by name.
pub const FIELDS: [(&str, Unit); 19] = [
    ("block_size", Unit::Size),
    ("direct_blocks", Unit::Plain),
    ("cluster", Unit::Size),
    ("fragment", Unit::Size),
    ("prefetch_first", Unit::Size),
    ("prefetch_limit", Unit::Size),
    ("system_call", Unit::Time),
    ("copy_per_kib", Unit::Time),
    ("overhead", Unit::Time),
    ("hit_overhead", Unit::Time),
    ("rpm", Unit::Plain),
    ("disk_rate", Unit::Rate),
    ("bus_rate", Unit::Rate),
    ("cache_segments", Unit::Plain),
    ("streams", Unit::Plain),
    ("file_size", Unit::Size),
    ("request", Unit::Size),
    ("think", Unit::Time),
    ("lone_seek", Unit::Plain),
];
const COUNT: usize = FIELDS.len();

/// The parameters that are not numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choices {
    /// The order of the driver's queue.
    pub scheduler: Scheduler,
    /// The rules by which files are read.
    pub form: Form,
    /// Whether the drive reads ahead; `None`: as the drive does.
    pub read_ahead: Option<bool>,
    /// Whether it does so only on a sequence; `None`: as the drive does.
    pub read_ahead_on_sequence: Option<bool>,
    /// Whether it does so while it processes the next request; `None`: as the drive does.
    pub read_during_overhead: Option<bool>,
    /// See [`FileSystem::first_alone`].
    pub first_alone: bool,
}

/// One number for each parameter.
#[derive(Debug, Clone)]
pub struct Sheet {
    /// By [`FIELDS`]; NaN for missing ones.
    values: [f64; COUNT],
    disk: Disk,
    choices: Choices,
}

/// Numbers of one parameter: its index in [`FIELDS`], and one number, or one for each row.
pub type Column = (usize, Vec<f64>);

impl Sheet {
    /// Only the drive's own numbers.
    #[must_use]
    pub fn new(disk: Disk, choices: Choices) -> Self {
        Self { values: [f64::NAN; COUNT], disk, choices }
    }

    /// The index of a parameter.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn index(name: &str) -> Result<usize, KeyError> {
        let found = FIELDS.iter().position(|(field, _)| *field == name);
        found.ok_or_else(|| KeyError::unknown_key(name, FIELDS.iter().map(|(field, _)| *field)))
    }

    /// Sets the parameter `name` from `text`.
    ///
    /// # Errors
    /// If there is no such parameter, or the text has another unit.
    pub fn set_text(&mut self, name: &str, text: &str) -> Result<(), KeyError> {
        let index = Self::index(name)?;
        self.values[index] =
            number(FIELDS[index].1, text).map_err(|(problem, allowed)| KeyError::new(name, problem, allowed))?;
        Ok(())
    }

    /// Writes the terms of each row: term t of row r at `out[t * rows + r]`, in the order of [`TERMS`]. A row has the
    /// sheet's numbers, overridden by those of the columns.
    ///
    /// The caller guarantees that each column has one number or `rows`, and `out` `TERMS.len()` times as many.
    ///
    /// # Errors
    /// The first row with a parameter out of range, and which.
    pub fn evaluate(
        &self,
        columns: &[Column],
        rows: usize,
        seeks: &mut Seeks,
        out: &mut [f64],
    ) -> Result<(), (usize, KeyError)> {
        assert_eq!(out.len(), rows * TERMS.len(), "a place for each term of each row");
        for (index, numbers) in columns {
            // Within a sheet, NaN stands for a missing number.
            if let Some(row) = numbers.iter().position(|number| number.is_nan()) {
                return Err((row, KeyError::new(FIELDS[*index].0, "is not a number", "numbers")));
            }
        }
        let mut sheet = self.clone();
        let (single, each): (Vec<&Column>, Vec<&Column>) = columns.iter().partition(|(_, numbers)| numbers.len() == 1);
        single.iter().for_each(|(index, numbers)| sheet.values[*index] = numbers[0]);
        for row in 0..rows {
            each.iter().for_each(|(index, numbers)| sheet.values[*index] = numbers[row]);
            let terms = sheet.parameters().and_then(|parameters| response(&parameters, seeks));
            let terms = terms.map_err(|error| (row, error))?.values();
            terms.into_iter().enumerate().for_each(|(term, value)| out[term * rows + row] = value);
        }
        Ok(())
    }

    /// The parameters.
    ///
    /// # Errors
    /// If a size or a count is not whole.
    pub fn parameters(&self) -> Result<Parameters, KeyError> {
        // In the order of FIELDS.
        let [block_size, direct, cluster, fragment, first, limit, rest @ ..] = self.values;
        let [call, copy, overhead, hit, rpm, disk_rate, bus_rate, segments, rest @ ..] = rest;
        let [streams, file_size, request, think, lone_seek] = rest;
        let block_bytes = whole(block_size, "block_size", 8192)?;
        let cluster_bytes = whole(cluster, "cluster", 65536)?;
        let limit_bytes = whole(limit, "prefetch_limit", cluster_bytes)?;
        let prefetch = match limit_bytes {
            0 => Prefetch::Off,
            _ => Prefetch::Doubling {
                first_bytes: whole(first, "prefetch_first", block_bytes.min(limit_bytes))?,
                limit_bytes,
            },
        };
        let file_system = FileSystem {
            block_bytes,
            direct_blocks: whole(direct, "direct_blocks", 12)?,
            cluster_bytes,
            // An eighth of a block, FFS's default.
            fragment_bytes: whole(fragment, "fragment", (block_bytes / 8).max(1))?,
            prefetch,
            first_alone: self.choices.first_alone,
            system_call_ns: or(call, 0.0),
            copy_ns_per_kib: or(copy, 0.0),
            form: self.choices.form,
        };
        let disk = Disk {
            miss_overhead_ns: or(overhead, self.disk.miss_overhead_ns),
            // A single given overhead is used for both, as in the paper.
            hit_overhead_ns: or(hit, or(overhead, self.disk.hit_overhead_ns)),
            revolution_ns: if rpm.is_nan() { self.disk.revolution_ns } else { 60e9 / rpm },
            disk_bytes_per_second: or(disk_rate, self.disk.disk_bytes_per_second),
            track_bytes_per_second: or(disk_rate, self.disk.track_bytes_per_second),
            rate_spread: self.disk.rate_spread,
            bus_bytes_per_second: or(bus_rate, self.disk.bus_bytes_per_second),
            cache_segments: small(segments, "cache_segments", self.disk.cache_segments)?,
            read_ahead: self.choices.read_ahead.unwrap_or(self.disk.read_ahead),
            read_ahead_on_sequence: self.choices.read_ahead_on_sequence.unwrap_or(self.disk.read_ahead_on_sequence),
            read_during_overhead: self.choices.read_during_overhead.unwrap_or(self.disk.read_during_overhead),
            scheduler: self.choices.scheduler,
            parallel: self.disk.parallel,
        };
        let work = Work {
            streams: small(streams, "streams", 1)?,
            file_bytes: whole(file_size, "file_size", 65536)?,
            request_bytes: whole(request, "request", 8192)?,
            think_ns: or(think, 0.0),
            lone_seek: or(lone_seek, 0.0),
        };
        Ok(Parameters { file_system, disk, work })
    }
}

fn or(value: f64, default: f64) -> f64 {
    if value.is_nan() {
        default
    } else {
        value
    }
}

fn whole(value: f64, name: &str, default: u64) -> Result<u64, KeyError> {
    if value.is_nan() {
        return Ok(default);
    }
    let number = value as u64;
    if number as f64 == value {
        return Ok(number);
    }
    Err(KeyError::new(name, format!("{value} is not whole"), "a whole number from 0"))
}

fn small(value: f64, name: &str, default: u32) -> Result<u32, KeyError> {
    let number = whole(value, name, default.into())?;
    let problem = || KeyError::new(name, format!("{number} is too many"), format!("up to {}", u32::MAX));
    u32::try_from(number).map_err(|_| problem())
}

/// The number in a text, or the problem and what is allowed.
fn number(unit: Unit, text: &str) -> Result<f64, (String, String)> {
    let size = |text: &str| text.parse().map(|bytes: Bytes| bytes.0 as f64);
    match unit {
        Unit::Size => size(text).map_err(|problem| (problem, Bytes::ALLOWED.to_owned())),
        Unit::Time => {
            let time = text.parse().map(|time: Nanos| time.0 as f64);
            time.map_err(|problem| (problem, Nanos::ALLOWED.to_owned()))
        }
        Unit::Rate => size(text.strip_suffix("/s").unwrap_or(text))
            .map_err(|problem| (problem, "a size per second, such as \"20MB/s\"".to_owned())),
        Unit::Plain => match text.parse() {
            Ok(number) if f64::is_finite(number) => Ok(number),
            _ => Err((format!("\"{text}\" is not a number"), "a number".to_owned())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_system::tables;

    fn sheet() -> Sheet {
        let choices = Choices {
            scheduler: Scheduler::Clook,
            form: Form::Tables,
            read_ahead: None,
            read_ahead_on_sequence: None,
            read_during_overhead: None,
            first_alone: true,
        };
        Sheet::new(tables::disk(1.8), choices)
    }

    #[test]
    fn each_name_is_its_parameter() {
        let mut sheet = sheet();
        let texts = [
            ("block_size", "4KiB"),
            ("direct_blocks", "10"),
            ("cluster", "32KiB"),
            ("fragment", "512B"),
            ("prefetch_first", "12KiB"),
            ("prefetch_limit", "16KiB"),
            ("system_call", "1us"),
            ("copy_per_kib", "2us"),
            ("overhead", "3us"),
            ("hit_overhead", "4us"),
            ("rpm", "6000"),
            ("disk_rate", "5MB/s"),
            ("bus_rate", "6MB"),
            ("cache_segments", "7"),
            ("streams", "8"),
            ("file_size", "9KiB"),
            ("request", "10KiB"),
            ("think", "11us"),
            ("lone_seek", "0.5"),
        ];
        assert_eq!(texts.map(|(name, _)| name), FIELDS.map(|(name, _)| name));
        for (name, text) in texts {
            sheet.set_text(name, text).expect(name);
        }
        let Parameters { file_system, disk, work } = sheet.parameters().expect("whole");
        let sizes = [file_system.block_bytes, file_system.cluster_bytes, file_system.fragment_bytes];
        assert_eq!((sizes, file_system.direct_blocks), ([4096, 32768, 512], 10));
        assert_eq!(file_system.prefetch, Prefetch::Doubling { first_bytes: 12288, limit_bytes: 16384 });
        assert_eq!((file_system.system_call_ns, file_system.copy_ns_per_kib), (1e3, 2e3));
        assert_eq!((disk.miss_overhead_ns, disk.hit_overhead_ns, disk.revolution_ns), (3e3, 4e3, 1e7));
        assert_eq!((disk.disk_bytes_per_second, disk.bus_bytes_per_second, disk.cache_segments), (5e6, 6e6, 7));
        assert_eq!((work.streams, work.file_bytes, work.request_bytes, work.think_ns), (8, 9216, 10240, 11e3));
        assert_eq!(work.lone_seek, 0.5);
    }

    #[test]
    fn what_is_not_given_follows() {
        let mut sheet = sheet();
        let given = sheet.parameters().expect("whole");
        assert_eq!(given.disk, tables::disk(1.8));
        assert_eq!(given.file_system.prefetch, tables::file_system().prefetch);
        sheet.set_text("cluster", "128KiB").expect("a size");
        sheet.set_text("overhead", "1ms").expect("a time");
        let Parameters { file_system, disk, .. } = sheet.parameters().expect("whole");
        assert_eq!(file_system.prefetch, Prefetch::Doubling { first_bytes: 8192, limit_bytes: 131_072 });
        assert_eq!(disk.hit_overhead_ns, 1e6);
        sheet.set_text("prefetch_limit", "0B").expect("a size");
        assert_eq!(sheet.parameters().expect("whole").file_system.prefetch, Prefetch::Off);
    }

    #[test]
    fn rows_are_what_one_at_a_time_gives() {
        let index = |name| Sheet::index(name).expect(name);
        let columns = [
            (index("streams"), vec![1.0, 4.0, 8.0]),
            (index("file_size"), vec![65536.0, 131_072.0, 1e6]),
            (index("rpm"), vec![10_000.0]),
        ];
        let mut out = vec![0.0; 3 * TERMS.len()];
        let mut seeks = Seeks::new(tables::seek_curve());
        sheet().evaluate(&columns, 3, &mut seeks, &mut out).expect("within range");
        for (row, (streams, file_bytes)) in [(1, 65536), (4, 131_072), (8, 1_000_000)].into_iter().enumerate() {
            let mut parameters = tables::parameters(1.8, streams, 8, 64);
            parameters.file_system.system_call_ns = 0.0;
            parameters.file_system.copy_ns_per_kib = 0.0;
            parameters.work.file_bytes = file_bytes;
            let expected = tables::run(&parameters).values();
            let ours: Vec<f64> = (0..TERMS.len()).map(|term| out[3 * term + row]).collect();
            assert_eq!(ours, expected);
        }
    }

    #[test]
    fn mistakes_name_parameter_and_row() {
        let fails = |name: &str, numbers: &[f64]| {
            let column = (Sheet::index(name).expect(name), numbers.to_vec());
            let mut out = vec![0.0; numbers.len() * TERMS.len()];
            let mut seeks = Seeks::new(tables::seek_curve());
            let found = sheet().evaluate(&[column], numbers.len(), &mut seeks, &mut out);
            let (row, error) = found.expect_err(name);
            format!("{row} {error}")
        };
        assert_eq!(fails("streams", &[1.0, 0.0]), "1 streams: 0 is out of range; allowed: 1 to 65536");
        assert_eq!(fails("streams", &[1.5]), "0 streams: 1.5 is not whole; allowed: a whole number from 0");
        assert_eq!(fails("file_size", &[-1.0]), "0 file_size: -1 is not whole; allowed: a whole number from 0");
        assert_eq!(fails("think", &[0.0, f64::NAN]), "1 think: is not a number; allowed: numbers");
        assert!(fails("rpm", &[0.0]).starts_with("0 rpm: "), "{}", fails("rpm", &[0.0]));
        let text = |name: &str, text: &str| sheet().set_text(name, text).expect_err(text).to_string();
        assert!(text("think", "5").starts_with("think: \"5\" has no unit; allowed: a time with a unit"));
        assert!(text("disk_rate", "fast").ends_with("allowed: a size per second, such as \"20MB/s\""));
        assert!(text("thnk", "5us").starts_with("thnk: unknown key (did you mean \"think\"?)"));
    }
}
