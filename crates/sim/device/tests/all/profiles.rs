//! The published figures of the shipped profiles, compared with the drives' behaviour.

use headstart_device::{build_device, Device, Mechanics, Request};
use headstart_types::Nanos;
use toml::Table;

fn drive(model: &str) -> (Box<dyn Device>, Mechanics) {
    let device = build_device(model, Table::new()).unwrap();
    let mechanics = device.mechanics().unwrap();
    (device, mechanics)
}

fn near(what: &str, value: f64, expected: f64, tolerance: f64) {
    assert!((value / expected - 1.0).abs() <= tolerance, "{what}: {value} against {expected}");
}

/// Mean over uniform positions of the lesser of media rate and `limit`, in bytes per second.
fn mean_rate(mechanics: &Mechanics, limit: f64) -> f64 {
    let sectors: u64 = mechanics.bands.iter().map(|band| band.sectors).sum();
    let weigh = |band: &headstart_device::Band| band.sectors as f64 * band.bytes_per_second.min(limit);
    mechanics.bands.iter().map(weigh).sum::<f64>() / sectors as f64
}

#[test]
fn competitive_prefetching() {
    // Li, Shen and Papathanasiou 2007, section 5: 37.3 MB/s, 7.53 ms + 3.00 ms, 393 KB.
    let (_, ibm) = drive("ibm-36gb-10k");
    near("rate", mean_rate(&ibm, 37.5e6), 37.3e6, 0.01);
    near("seek", ibm.mean_seek_ns(), 7.53e6, 0.01);
    let depth = mean_rate(&ibm, 37.5e6) * (ibm.mean_seek_ns() + ibm.revolution().0 as f64 / 2.0) / 1e9;
    near("depth", depth, 393e3, 0.01);
    let facts = ibm.facts();
    near("limited rate", facts.rate_at(0), 37.5e6, 1e-6);
    near("rate by time", facts.mean_rate(), 37.3e6, 0.01);
    assert_eq!((facts.half_turn, facts.seek.len()), (Nanos(3_000_000), 8 * 2437));
    // 55.8 MB/s, 7.98 ms with half a turn, 446 KB.
    let (_, seagate) = drive("seagate-146gb-10k");
    let rate = mean_rate(&seagate, f64::INFINITY);
    near("rate", rate, 55.8e6, 0.01);
    let switch = seagate.mean_seek_ns() + seagate.revolution().0 as f64 / 2.0;
    near("switch", switch, 7.98e6, 0.01);
    near("depth", rate * switch / 1e9, 446e3, 0.01);
}

/// Bytes per second of sequential reads of `sectors`, as a mean over uniform positions by time.
fn sequential_rate(model: &str, sectors: u32) -> f64 {
    const PLACES: u64 = 40;
    const READS: u32 = 100;
    let (mut device, _) = drive(model);
    let capacity = device.capacity_sectors().unwrap();
    let mut busy = 0;
    let mut now = Nanos::ZERO;
    for place in 0..PLACES {
        let first = capacity / PLACES * place;
        let read = |number: u32| Request::read(first + u64::from(number * sectors), sectors, 0);
        // The first read moves the arm; the rate is that of the following reads.
        now = device.serve(now, &read(0)).end;
        let begin = now;
        now = (1..=READS).fold(now, |now, number| device.serve(now, &read(number)).end);
        busy += (now - begin).0;
    }
    PLACES as f64 * f64::from(READS) * f64::from(sectors) * 512e9 / busy as f64
}

#[test]
fn a_reader_in_order_gets_the_printed_rates() {
    // Section 5; with requests of 128 KiB and of 1 MiB, since the paper does not give the size.
    for sectors in [256, 2048] {
        near("IBM", sequential_rate("ibm-36gb-10k", sectors), 37.3e6, 0.02);
        near("Seagate", sequential_rate("seagate-146gb-10k", sectors), 55.8e6, 0.02);
    }
}

#[test]
fn readers_in_order_get_what_the_facts_say() {
    // For the drives whose buffer is our guess: the facts given to policies match the drive's behaviour.
    for model in ["ibm-36gb-10k", "seagate-146gb-10k", "seagate-exos-x20"] {
        let facts = drive(model).1.facts();
        near(model, sequential_rate(model, 2048), facts.mean_rate(), 0.02);
    }
}

#[test]
fn lightning() {
    // 2 ms minimum, 12.5 ms on average, 25 ms maximum; 13.9 ms per revolution; 320 MB. The curve is given as 2.0 + 0.01
    // d + 0.46 sqrt(d) ms: (15 * 12.5 - 10 * 2 - 5 * 25) / (3 * sqrt(949)) = 0.4599 and (7 * 2 + 8 * 25 - 15 * 12.5) /
    // (3 * 949) = 0.0093, with d - 1 for d.
    let (device, mechanics) = drive("ibm-0661");
    near("capacity", device.capacity_sectors().unwrap() as f64 * 512.0, 320e6, 0.03);
    near("turn", mechanics.revolution().0 as f64, 13.9e6, 0.001);
    near("mean seek", mechanics.mean_seek_ns(), 12.5e6, 0.005);
    near("longest seek", mechanics.seek[948].0 as f64, 25e6, 0.002);
    for d in [1_u32, 10, 100, 900] {
        let beyond = f64::from(d - 1);
        near("seek", mechanics.seek[d as usize].0 as f64, 2e6 + 9_308.0 * beyond + 459_869.0 * beyond.sqrt(), 1e-4);
    }
}

#[test]
fn exos() {
    let (device, mechanics) = drive("seagate-exos-x20");
    assert_eq!(device.capacity_sectors(), Some(20_000_588_955_648 / 512));
    near("outermost rate", mechanics.bands[0].bytes_per_second, 285e6, 0.01);
}

#[test]
fn extracted_drives() {
    // Block counts as the drives report them; the zones hold slightly more.
    for (model, sectors) in [
        ("seagate-cheetah-9lp", 17_783_240),
        ("seagate-cheetah-4lp", 8_887_200),
        ("seagate-barracuda-st32171w", 4_110_000),
        ("quantum-atlas-10k", 17_938_986),
    ] {
        let (device, mechanics) = drive(model);
        assert_eq!(device.capacity_sectors(), Some(sectors), "{model}");
        let held: u64 = mechanics.bands.iter().map(|band| band.sectors).sum();
        assert!((1.0..1.03).contains(&(held as f64 / sectors as f64)), "{model}: {held}");
    }
    // 10,045 rpm past 254 sectors of 512 bytes: 21.8 MB/s without switches; 97 sectors of skew, 133 every twelfth
    // track: 12 * 254 of 12 * 254 + 11 * 97 + 133 sectors are data.
    let (_, cheetah) = drive("seagate-cheetah-9lp");
    let raw = 10_045.0 / 60.0 * 254.0 * 512.0;
    near("rate", cheetah.bands[0].bytes_per_second, raw * 3048.0 / 4248.0, 0.001);
}

/// The file-system model's parameters, as in the profiles, and as a hit then takes them.
#[test]
fn controller_bus_and_buffer() {
    for (model, hit, miss, bus, segments, sectors) in [
        ("hp97560", 2_200_000, 2_200_000, 51_200.0, 1, 256),
        ("seagate-cheetah-4lp", 68_000, 607_730, 106_000.0, 3, 282),
        ("ibm-0661", 300_000, 300_000, 512e9 / 4e6, 0, 0),
    ] {
        let (mut device, mechanics) = drive(model);
        let Mechanics { hit_overhead, miss_overhead, bus_sector_ns, segments: held, segment_sectors, .. } = mechanics;
        assert_eq!((hit_overhead.0, miss_overhead.0), (hit, miss), "{model}");
        assert_eq!((held, segment_sectors, mechanics.reads_ahead), (segments, sectors, segments > 0), "{model}");
        assert_eq!(bus_sector_ns, bus, "{model}");
        let first = device.serve(Nanos::ZERO, &Request::read(1_000, 16, 0));
        let (later, next) = (first.end + Nanos::from_millis(100), Request::read(1_016, 16, 0));
        let again = device.serve(later, &next);
        assert_eq!(again.buffer_hit, segments > 0, "{model}");
        if again.buffer_hit {
            assert_eq!((again.end - later).0, hit + 16 * bus as u64, "{model}");
        }
    }
    // Segments for writes only, and a buffer that serves no reads.
    let with = |keys: &str| build_device("seagate-cheetah-4lp", keys.parse().unwrap()).unwrap().mechanics().unwrap();
    assert_eq!(with("buffer = {write_segment_apart = true}").segments, 2);
    let none = with("buffer = {caching = false}");
    assert_eq!((none.segments, none.segment_sectors, none.reads_ahead), (0, 0, false));
    assert!(!with("buffer = {read_ahead = 'none'}").reads_ahead);
    assert_eq!(with("bus = {bytes_per_second = 9300000}").bus_sector_ns, 512e9 / 9.3e6);
    assert_eq!(with("controller = {overhead = '1.2ms'}").miss_overhead, Nanos(1_200_000));
}
