//! Solid-state drives: by hand, and compared with a naive model that walks page by page.

use std::collections::BTreeMap;

use headstart_device::{build_device, Device, Request, Service};
use headstart_types::Nanos;
use proptest::prelude::*;
use toml::Table;

fn flash(model: &str, keys: &str) -> Box<dyn Device> {
    build_device(model, keys.parse::<Table>().unwrap()).unwrap()
}

/// Two channels, pages of 8 sectors, 50 us to read, 200 us to program, 512 ns a sector on the link.
const SMALL: &str = "channels = 2\npage_size = '4KiB'\nread_time = '50us'\nprogram_time = '200us'\n\
                     read_overhead = '10us'\nwrite_overhead = '20us'\nlink_bytes_per_second = 1_000_000_000\n\
                     link_command = '1us'\nwrite_command = '0us'\nduplex = true\nwrite_buffer = '0B'\n";

fn small(keys: &str) -> Box<dyn Device> {
    let mut table: Table = SMALL.parse().unwrap();
    table.extend(keys.parse::<Table>().unwrap());
    build_device("nvme", table).unwrap()
}

/// End, wait, transfer and overhead in nanoseconds.
fn facts(service: Service) -> [u64; 4] {
    [service.end.0, service.wait.0, service.transfer.0, service.overhead.0]
}

#[test]
fn a_page_by_hand() {
    let mut drive = small("");
    // 10 us overhead, 50 us of flash, 1 us and 8 * 512 ns of link.
    assert_eq!(facts(drive.serve(Nanos(0), &Request::read(0, 8, 0))), [65_096, 0, 55_096, 10_000]);
    // Page 2, the same channel: free at 60 us, the page is there at 110 us.
    assert_eq!(drive.positioning(Nanos(0), &Request::read(16, 8, 0)), Nanos(50_000));
    assert_eq!(facts(drive.serve(Nanos(0), &Request::read(16, 8, 0))), [115_096, 50_000, 55_096, 10_000]);
    // Page 3, the other channel: there at 60 us. The link has been booked from 60 us for 5,096 ns twice.
    assert_eq!(drive.positioning(Nanos(0), &Request::read(24, 8, 0)), Nanos(0));
    assert_eq!(facts(drive.serve(Nanos(0), &Request::read(24, 8, 0))), [75_288, 10_192, 55_096, 10_000]);
    // Half a page, idle drive: all of the page is read, half of it sent.
    assert_eq!(facts(drive.serve(Nanos(1_000_000), &Request::read(12, 4, 0))), [1_063_048, 0, 53_048, 10_000]);
}

#[test]
fn a_page_in_its_register_by_hand() {
    let mut drive = small("");
    // A quarter of page 1: 10 us overhead, 50 us of flash, 1 us and 2 * 512 ns of link.
    assert_eq!(facts(drive.serve(Nanos(0), &Request::read(8, 2, 0))), [62_024, 0, 52_024, 10_000]);
    // The next quarter, 30 us later: ready at 40 us, and the page is there at 60 us; the link is free at 62,024.
    assert_eq!(facts(drive.serve(Nanos(30_000), &Request::read(10, 2, 0))), [64_048, 2_024, 22_024, 10_000]);
    // The rest, later: only overhead and link. Pages 2 and 1 together: only page 2 is read.
    assert_eq!(facts(drive.serve(Nanos(100_000), &Request::read(12, 4, 0))), [113_048, 0, 3_048, 10_000]);
    assert_eq!(facts(drive.serve(Nanos(200_000), &Request::read(12, 12, 0))), [267_144, 0, 57_144, 10_000]);
    // Page 3 replaces page 1 in the register of the second channel; page 2 is still in that of the first.
    assert_eq!(drive.serve(Nanos(300_000), &Request::read(24, 2, 0)).end, Nanos(362_024));
    assert_eq!(drive.serve(Nanos(400_000), &Request::read(8, 2, 0)).end, Nanos(462_024));
    assert_eq!(drive.serve(Nanos(500_000), &Request::read(16, 2, 0)).end, Nanos(512_024));
    // A write to page 4 uses the register of the first channel. Page 1 stays where it is.
    assert_eq!(drive.serve(Nanos(600_000), &Request::write(32, 8, 0)).end, Nanos(825_096));
    assert_eq!(drive.serve(Nanos(900_000), &Request::read(16, 2, 0)).end, Nanos(962_024));
    assert_eq!(drive.serve(Nanos(1_000_000), &Request::read(8, 2, 0)).end, Nanos(1_012_024));
    // The content of a register is out of date when a write to its page waits in the buffer.
    let mut drive = small("write_buffer = '8KiB'");
    assert_eq!(drive.serve(Nanos(0), &Request::read(8, 2, 0)).end, Nanos(62_024));
    drive.serve(Nanos(100_000), &Request::write(8, 2, 0));
    assert_eq!(drive.serve(Nanos(200_000), &Request::read(8, 2, 0)).end, Nanos(262_024));
}

#[test]
fn read_ahead_by_hand() {
    // Two pages ahead.
    let mut drive = small("read_ahead = '8KiB'");
    assert_eq!(drive.serve(Nanos(0), &Request::read(0, 8, 0)).end, Nanos(65_096));
    // Page 1 continues: it is there at 160 us, page 2 as well, and page 3 at 210 us.
    assert_eq!(drive.serve(Nanos(100_000), &Request::read(8, 8, 0)).end, Nanos(165_096));
    // Page 2 waits for the link, and page 4 is read.
    assert_eq!(drive.positioning(Nanos(150_000), &Request::read(16, 8, 0)), Nanos(0));
    assert_eq!(facts(drive.serve(Nanos(150_000), &Request::read(16, 8, 0))), [170_192, 5_096, 5_096, 10_000]);
    // Half of page 3, 20 us before it is there, and the other half.
    assert_eq!(drive.positioning(Nanos(180_000), &Request::read(24, 4, 0)), Nanos(20_000));
    assert_eq!(facts(drive.serve(Nanos(180_000), &Request::read(24, 4, 0))), [213_048, 20_000, 3_048, 10_000]);
    assert_eq!(facts(drive.serve(Nanos(300_000), &Request::read(28, 4, 0))), [313_048, 0, 3_048, 10_000]);
    // A page is left out. Pages 6 and 7 are read ahead; a write to page 6 discards both.
    assert_eq!(drive.serve(Nanos(400_000), &Request::read(40, 8, 0)).end, Nanos(415_096));
    let mut other = drive.clone_box();
    assert_eq!(other.serve(Nanos(2_000_000), &Request::read(48, 8, 0)).end, Nanos(2_015_096));
    drive.serve(Nanos(1_000_000), &Request::write(48, 2, 0));
    assert_eq!(drive.serve(Nanos(2_000_000), &Request::read(48, 8, 0)).end, Nanos(2_065_096));
}

/// A lone reader in order gains by read-ahead, or does not lose; one of separate places never notices.
#[test]
fn read_ahead_costs_a_lone_reader_nothing() {
    for model in ["nvme", "nvme-gen5", "sata-ssd"] {
        for sectors in [1, 8, 31, 32, 256, 2_048] {
            let ends = |ahead: &str, place: &dyn Fn(u64) -> u64| {
                let mut drive = flash(model, &format!("read_ahead = '{ahead}'"));
                let mut now = Nanos::ZERO;
                (0..500).for_each(|at| now = drive.serve(now, &Request::read(place(at), sectors, 0)).end);
                now
            };
            let in_order = |at: u64| at * u64::from(sectors);
            let apart = |at: u64| (1_000 - at) * 100_000;
            for ahead in ["16KiB", "128KiB", "1MiB"] {
                let (with, without) = (ends(ahead, &in_order), ends("0B", &in_order));
                assert!(with <= without, "{model}, {sectors} sectors, {ahead}: {with} and {without}");
                assert_eq!(ends(ahead, &apart), ends("0B", &apart), "{model}, {sectors} sectors, {ahead}");
            }
        }
    }
}

#[test]
fn several_pages_by_hand() {
    let mut drive = small("");
    // Pages 1 to 3: channels 1, 0 and 1 again. The last page is there at 10 + 2 * 50 us and takes 1 + 4.096 us of link.
    assert_eq!(facts(drive.serve(Nanos(0), &Request::read(8, 24, 0))), [115_096, 0, 105_096, 10_000]);
    // A slow link: 24 sectors take 122,880 ns of it from 60 us on, longer than the flash.
    let mut drive = small("link_bytes_per_second = 100_000_000\nlink_command = '0us'");
    assert_eq!(facts(drive.serve(Nanos(0), &Request::read(8, 24, 0))), [182_880, 0, 172_880, 10_000]);
    // The next, page 0, has been read at 160 us (its channel read page 2 until 110 us); the link is free at 182,880.
    assert_eq!(facts(drive.serve(Nanos(0), &Request::read(0, 8, 0))), [223_840, 122_880, 90_960, 10_000]);
}

#[test]
fn writes_by_hand() {
    let mut drive = small("");
    // 20 us overhead, 5,096 ns of link, 200 us of flash.
    assert_eq!(facts(drive.serve(Nanos(0), &Request::write(0, 8, 0))), [225_096, 0, 205_096, 20_000]);
    // Pages 0 and 1: on the link from 25,096 for 9,192 ns. Page 0 is there at 30,192, its channel free at 225,096.
    let service = drive.serve(Nanos(0), &Request::write(0, 16, 0));
    assert_eq!(facts(service), [425_096, 5_096 + 194_904, 205_096, 20_000]);
    // Duplex: a read does not wait for the link; it waits for page 1's channel, which programs until 234,288.
    assert_eq!(facts(drive.serve(Nanos(0), &Request::read(8, 8, 0))), [289_384, 224_288, 55_096, 10_000]);
    // Half duplex: a write of 20 us + 5,096 ns has the link before a read whose page has been read at 60 us needs it.
    let mut drive = small("duplex = false\nread_time = '5us'");
    assert_eq!(drive.serve(Nanos(0), &Request::write(0, 8, 0)).end, Nanos(225_096));
    assert_eq!(facts(drive.serve(Nanos(0), &Request::read(8, 8, 0))), [30_192, 10_096, 10_096, 10_000]);
}

#[test]
fn a_write_buffer_by_hand() {
    // Two pages of buffer, one channel, no time per command.
    let mut drive = small("channels = 1\nwrite_buffer = '8KiB'\nlink_command = '0us'");
    // A read of a page in its register.
    assert_eq!(drive.least_service(8), Nanos(14_096));
    // Pages A and B are accepted on arrival, and programmed from 24,096 and 224,096 on.
    assert_eq!(facts(drive.serve(Nanos(0), &Request::write(80, 8, 0))), [24_096, 0, 4_096, 20_000]);
    assert_eq!(facts(drive.serve(Nanos(0), &Request::write(0, 8, 0))), [28_192, 4_096, 4_096, 20_000]);
    // C gets its slot when A has been programmed, at 224,096; its data had arrived at 32,288.
    assert_eq!(drive.positioning(Nanos(0), &Request::write(0, 4, 0)), Nanos(204_096));
    assert_eq!(facts(drive.serve(Nanos(0), &Request::write(800, 4, 0))), [224_096, 8_192 + 193_856, 2_048, 20_000]);
    // The other half of C: accepted on arrival. C is programmed after B, at 424,096; a read waits for that.
    assert_eq!(facts(drive.serve(Nanos(300_000), &Request::write(7, 4, 0))), [322_048, 0, 2_048, 20_000]);
    assert_eq!(drive.serve(Nanos(330_000), &Request::read(0, 8, 0)).end, Nanos(624_096 + 50_000 + 4_096));
}

/// The same drive, page by page, with its whole history kept.
#[derive(Default)]
struct Naive {
    page: u64,
    channels: u64,
    read: u64,
    program: u64,
    overhead: [u64; 2],
    rate: u64,
    /// Of a read and of a write.
    command: [u64; 2],
    duplex: bool,
    buffer: usize,
    free: Vec<u64>,
    /// The page in the register of each channel.
    held: Vec<Option<u64>>,
    link: [u64; 2],
    /// When each page that was written through the buffer had been programmed, in order.
    left: Vec<u64>,
    filled: u64,
}

impl Naive {
    fn on_link(&self, sectors: u64) -> u64 {
        (u128::from(sectors) * 512_000_000_000).div_ceil(u128::from(self.rate)) as u64
    }

    fn book(&mut self, from: u64, sectors: u64, write: bool) -> (u64, u64) {
        let which = if self.duplex { usize::from(write) } else { 0 };
        let begin = from.max(self.link[which]);
        self.link[which] = begin + self.command[usize::from(write)] + self.on_link(sectors);
        (begin, self.link[which])
    }

    /// End and wait; if several channels end at the same time, the wait of any of them is accepted.
    fn serve(&mut self, now: u64, request: &Request) -> (u64, Vec<u64>) {
        let sectors = u64::from(request.sectors);
        let ready = now + self.overhead[usize::from(request.write)];
        let mut pages: Vec<u64> = (request.sector..request.end()).map(|sector| sector / self.page).collect();
        pages.dedup();
        let first = self.page.min(sectors);
        if !request.write {
            let (done, waits) = self.walk(&pages, |_| ready, self.read, true);
            let earliest = done.min(ready + self.read);
            let (begin, sent) = self.book(earliest, sectors, false);
            let alone = done + self.command[0] + self.on_link(first);
            return if alone >= sent { (alone, waits) } else { (sent, vec![begin - earliest]) };
        }
        for held in &mut self.held {
            *held = held.filter(|held| !pages.contains(held));
        }
        let (begin, sent) = self.book(ready, sectors, true);
        if self.buffer == 0 {
            let (head, each) = (begin + self.command[1] + self.on_link(first), self.on_link(self.page));
            let (done, waits) = self.walk(&pages, |index| sent.min(head + index * each), self.program, false);
            return (done, waits.iter().map(|wait| begin - ready + wait).collect());
        }
        let end = self.buffered(begin, sent, sectors);
        (end, vec![begin - ready + (end - sent)])
    }

    /// Runs each page, ready at some instant, on its channel; returns the last end and the waits of the channels that
    /// end then. A read of the page in the register takes no time.
    fn walk(&mut self, pages: &[u64], there: impl Fn(u64) -> u64, time: u64, reads: bool) -> (u64, Vec<u64>) {
        let mut channels: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for (index, page) in pages.iter().enumerate() {
            let channel = page % self.channels;
            let free = &mut self.free[channel as usize];
            let (there, start) = (there(index as u64), there(index as u64).max(*free));
            let is_held = reads && self.held[channel as usize] == Some(*page);
            self.held[channel as usize] = reads.then_some(*page);
            let end = if is_held { start } else { start + time };
            *free = if is_held { *free } else { end };
            channels.entry(channel).or_insert((0, start - there)).0 = end;
        }
        let last = channels.values().map(|channel| channel.0).max().unwrap();
        (last, channels.values().filter(|channel| channel.0 == last).map(|channel| channel.1).collect())
    }

    fn buffered(&mut self, begin: u64, sent: u64, sectors: u64) -> u64 {
        let (mut taken, mut pieces, mut end) = (0, 0, 0);
        let head = begin + self.command[1] + self.on_link((self.page - self.filled).min(sectors));
        while taken < sectors {
            let piece = (self.page - self.filled).min(sectors - taken);
            taken += piece;
            let there = if taken == sectors { sent } else { sent.min(head + pieces * self.on_link(self.page)) };
            pieces += 1;
            // Its slot: all but buffer - 1 of the pages before it have been programmed.
            let before = (self.left.len() + 1).saturating_sub(self.buffer);
            end = there.max(self.left[..before].iter().copied().max().unwrap_or(0));
            self.filled += piece;
            if self.filled == self.page {
                let channel = self.left.len() % self.channels as usize;
                self.free[channel] = end.max(self.free[channel]) + self.program;
                self.held[channel] = None;
                self.left.push(self.free[channel]);
                self.filled = 0;
            }
        }
        end
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn agrees_with_the_naive_model(
        (page, channels, buffer) in (1u64..12, 1u64..6, 0u64..6),
        (read, program, rate) in (0u64..90_000, 0u64..300_000, 3_000_000u64..900_000_000),
        (command, write_command) in (0u64..3_000, 0u64..3_000),
        duplex in any::<bool>(),
        load in prop::collection::vec((0u64..60_000, 0u64..400, 1u32..70, any::<bool>()), 1..80),
    ) {
        let keys = format!(
            "channels = {channels}\npage_size = '{}B'\nread_time = '{read}ns'\nprogram_time = '{program}ns'\n\
             read_overhead = '3us'\nwrite_overhead = '4us'\nlink_bytes_per_second = {rate}\n\
             link_command = '{command}ns'\nduplex = {duplex}\nwrite_buffer = '{}B'\n\
             write_command = '{write_command}ns'", page * 512, buffer * page * 512);
        let mut drive = flash("nvme", &keys);
        let mut naive = Naive {
            page, channels, read, program, rate, duplex, command: [command, command + write_command],
            overhead: [3_000, 4_000], buffer: buffer as usize, free: vec![0; channels as usize],
            held: vec![None; channels as usize], ..Naive::default()
        };
        let mut now = 0;
        for (gap, sector, sectors, write) in load {
            now += gap;
            let request = Request { write, ..Request::read(sector, sectors, 0) };
            let service = drive.serve(Nanos(now), &request);
            let (end, waits) = naive.serve(now, &request);
            prop_assert_eq!(service.end.0, end, "{:?} at {}", request, now);
            prop_assert!(waits.contains(&service.wait.0), "{:?} at {}: {:?}, {:?}", request, now, service, waits);
            prop_assert!(service.end >= Nanos(now) + drive.least_service(sectors));
        }
    }
}

#[test]
fn mistakes_name_their_key() {
    for (keys, begins) in [
        ("channels = 0", "channels: 0 is out of range; allowed: a whole number from 1 to 65536"),
        ("page_size = '1000B'", "page_size: 1kB is not a whole number of sectors"),
        ("page_size = '0B'", "page_size: 0B is not"),
        ("capacity = '511B'", "capacity: 511B is out of range; allowed: a size from 512B"),
        ("capacity = '2000TiB'", "capacity: 2000TiB is too large; allowed: a size from 512B to 1024TiB"),
        ("read_time = '2s'", "read_time: 2s is too long; allowed: a time of at most 1s"),
        ("read_time = 40", "read_time: 40 is a number"),
        ("queue_depth = 0", "queue_depth: 0 is out of range"),
        ("over_provisioning = -0.1", "over_provisioning: -0.1 is out of range; allowed: a number from 0"),
        (
            "over_provisioning = 0.1\nmapping_size = '3KiB'",
            "mapping_size: 3KiB in pages of 16KiB; allowed: whole sectors",
        ),
        ("over_provisioning = 0.1\nwrite_buffer = '0B'", "write_buffer: is needed to gather writes"),
        ("over_provisioning = 0.1\ncapacity = '1GB'", "over_provisioning: 0 superblocks of 268 MB"),
        ("duplex = 'no'", "duplex: \"no\" is a string; allowed: true or false"),
        ("write_buffer = '1TiB'", "write_buffer: 67108864 pages are too many; allowed: at most 1048576"),
        ("read_ahead = '65MiB'", "read_ahead: 65MiB is too large; allowed: a size of at most 64MiB"),
        ("rpm = 7200", "rpm: unknown key; allowed: capacity, page_size"),
    ] {
        let error = build_device("nvme", keys.parse().unwrap()).err().unwrap().to_string();
        assert!(error.starts_with(begins), "{error:?} should begin with {begins:?}");
    }
}
