//! Solid-state drives: by hand, compared with a naive model that walks page by page, and with their data sheets.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

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
    assert_eq!(facts(drive.serve(Nanos(1_000_000), &Request::read(28, 4, 0))), [1_063_048, 0, 53_048, 10_000]);
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
    assert_eq!(drive.least_service(8), Nanos(24_096));
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
            let (done, waits) = self.walk(&pages, |_| ready, self.read);
            let (begin, sent) = self.book(ready + self.read, sectors, false);
            let alone = done + self.command[0] + self.on_link(first);
            return if alone >= sent { (alone, waits) } else { (sent, vec![begin - ready - self.read]) };
        }
        let (begin, sent) = self.book(ready, sectors, true);
        if self.buffer == 0 {
            let (head, each) = (begin + self.command[1] + self.on_link(first), self.on_link(self.page));
            let (done, waits) = self.walk(&pages, |index| sent.min(head + index * each), self.program);
            return (done, waits.iter().map(|wait| begin - ready + wait).collect());
        }
        let end = self.buffered(begin, sent, sectors);
        (end, vec![begin - ready + (end - sent)])
    }

    /// Runs each page, ready at some instant, on its channel; returns the last end and the waits of the channels that
    /// end then.
    fn walk(&mut self, pages: &[u64], there: impl Fn(u64) -> u64, time: u64) -> (u64, Vec<u64>) {
        let mut channels: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for (index, page) in pages.iter().enumerate() {
            let channel = page % self.channels;
            let free = &mut self.free[channel as usize];
            let (there, start) = (there(index as u64), there(index as u64).max(*free));
            *free = start + time;
            channels.entry(channel).or_insert((0, start - there)).0 = start + time;
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
            overhead: [3_000, 4_000], buffer: buffer as usize, free: vec![0; channels as usize], ..Naive::default()
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

/// Requests per second in a closed loop with `depth` outstanding, `sectors` each, random or sequential.
fn rate(model: &str, depth: usize, sectors: u32, write: bool, random: bool) -> f64 {
    rates(flash(model, ""), (depth, sectors, write, random), 200_000, 1)[0]
}

/// The same for `times` consecutive groups of `count` requests.
fn rates(
    mut drive: Box<dyn Device>,
    (depth, sectors, write, random): (usize, u32, bool, bool),
    count: u64,
    times: u64,
) -> Vec<f64> {
    let places = drive.capacity_sectors().unwrap() / u64::from(sectors);
    let (mut state, mut ends) = (88_172_645_463_325_252u64, BinaryHeap::new());
    let (mut now, mut before, mut found) = (Nanos::ZERO, Nanos::ZERO, Vec::new());
    for index in 0..count * times {
        if ends.len() == depth {
            let Reverse(end) = ends.pop().unwrap();
            now = end;
        }
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let place = if random { state % places } else { index % places };
        let request = Request { write, ..Request::read(place * u64::from(sectors), sectors, index) };
        ends.push(Reverse(drive.serve(now, &request).end));
        if (index + 1) % count == 0 {
            found.push(count as f64 / (now - std::mem::replace(&mut before, now)).as_secs_f64());
        }
    }
    found
}

/// A drive of 4 GB with superblocks of 4 MiB instead of 6.4 TB with those of 1 GiB, each erased in proportionally less
/// time: write amplification depends on ratios, not on sizes.
const SLICE: &str = "capacity = '4GB'\nblock_pages = 1\nerase_time = '12us'\nwrite_buffer = '4MiB'";

/// Random writes to a full drive: fast while erased blocks last, then as specified.
#[test]
fn a_drive_written_at_random_falls_off_the_write_cliff() {
    let found = rates(flash("nvme-gen5", SLICE), (512, 8, true, true), 100_000, 20);
    println!("{found:.0?}");
    let steady = found[15..].iter().sum::<f64>() / 5.0;
    assert!(found[0] > 2_000_000.0, "erased blocks last for 200,000 writes: {found:.0?}");
    assert!((steady / 640_000.0 - 1.0).abs() < 0.06, "figures: 640,000 a second, not {steady:.0}");
    // Sequential writes move nothing, whatever was written before.
    let found = rates(flash("nvme-gen5", SLICE), (32, 256, true, false), 10_000, 20);
    assert!(found[15..].iter().all(|rate| (rate * 131_072.0 / 10_000e6 - 1.0).abs() < 0.06), "{found:.0?}");
}

/// The shipped numbers reproduce the figures from which they were derived: all of a data sheet together, each within 6
/// %. A data sheet gives neither depth nor size of its sequential rates: requests of 128 KiB, 32 outstanding, and of 1
/// MiB, one at a time if the link is the bottleneck.
#[test]
fn shipped_drives_do_what_their_data_sheets_say() {
    for (model, depth, sectors, write, random, says) in [
        ("nvme", 1, 8, false, true, 22_000.0),
        ("nvme", 1, 8, true, true, 80_000.0),
        ("nvme", 512, 8, false, true, 1_400_000.0),
        ("nvme", 512, 8, true, true, 1_550_000.0),
        ("nvme", 32, 256, false, false, 7_450e6 / 131_072.0),
        ("nvme", 32, 256, true, false, 6_900e6 / 131_072.0),
        ("nvme-gen5", 1, 8, false, true, 1e6 / 60.0),
        ("nvme-gen5", 1, 8, true, true, 1e6 / 15.0),
        ("nvme-gen5", 1024, 8, false, true, 3_300_000.0),
        ("nvme-gen5", 32, 256, false, false, 14_000e6 / 131_072.0),
        ("nvme-gen5", 32, 256, true, false, 10_000e6 / 131_072.0),
        ("sata-ssd", 1, 8, false, true, 13_000.0),
        ("sata-ssd", 1, 8, true, true, 36_000.0),
        ("sata-ssd", 32, 8, false, true, 98_000.0),
        ("sata-ssd", 32, 8, true, true, 88_000.0),
        ("sata-ssd", 32, 256, false, false, 560e6 / 131_072.0),
        ("sata-ssd", 32, 256, true, false, 530e6 / 131_072.0),
        ("sata-ssd", 1, 2048, false, false, 560e6 / 1_048_576.0),
        ("sata-ssd", 1, 2048, true, false, 530e6 / 1_048_576.0),
    ] {
        let does = rate(model, depth, sectors, write, random);
        let which = if write { "writes" } else { "reads" };
        println!("{model}, {depth} deep, {sectors} sectors, {which}: {does:.0} a second, data sheet {says:.0}");
        assert!(
            (does / says - 1.0).abs() < 0.06,
            "{model}, {depth} deep, {sectors} sectors, {which}: {does} for {says}"
        );
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
        ("rpm = 7200", "rpm: unknown key; allowed: capacity, page_size"),
    ] {
        let error = build_device("nvme", keys.parse().unwrap()).err().unwrap().to_string();
        assert!(error.starts_with(begins), "{error:?} should begin with {begins:?}");
    }
}
