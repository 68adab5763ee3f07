//! What must hold of reading ahead, on every drive: skipping costs nothing, and waiting costs nothing.

use headstart_device::{build_device, Device, Request, MODELS};
use headstart_types::Nanos;
use proptest::prelude::*;
use toml::{Table, Value};

/// The models with a segmented buffer that read ahead, with their `buffer` tables.
fn drives() -> Vec<(&'static str, Table)> {
    let buffer = |row: &headstart_device::Model| match (row.defaults)().remove("buffer") {
        Some(Value::Table(buffer)) => Some((row.name, buffer)),
        _ => None,
    };
    let reads_ahead = |name: &str| {
        build_device(name, Table::new()).unwrap().mechanics().is_some_and(|mechanics| mechanics.reads_ahead)
    };
    MODELS.iter().filter_map(buffer).filter(|(name, _)| reads_ahead(name)).collect()
}

fn is_on(buffer: &Table, key: &str) -> bool {
    buffer.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// Reads the blocks of `numbers`, which count from `first` in `sectors`, with `think` before each but the first. When
/// the last ends, and the responses.
fn read(device: &mut dyn Device, first: u64, sectors: u32, numbers: &[u64], think: Nanos) -> (Nanos, Vec<Nanos>) {
    let mut now = Nanos::ZERO;
    let one = |number: &u64| {
        let begun = now;
        let end = device.serve(begun, &Request::read(first + number * u64::from(sectors), sectors, 0)).end;
        now = end + think;
        end - begun
    };
    let responses = numbers.iter().map(one).collect();
    (now - think, responses)
}

/// Where a string of `length` sectors may begin that lies in one zone: a share of the places, in 2^32.
fn begins(device: &dyn Device, length: u64, (zone, share): (usize, u64)) -> u64 {
    let bands = device.mechanics().unwrap().bands;
    let band = &bands[zone % bands.len()];
    let most = device.capacity_sectors().unwrap().min(band.first + band.sectors).saturating_sub(length);
    band.first + (most.saturating_sub(band.first) * share >> 32)
}

const SIZES: [u32; 6] = [1, 8, 16, 64, 256, 1_024];
const THINKS: [u64; 7] = [0, 20_000, 100_000, 500_000, 2_000_000, 10_000_000, 40_000_000];

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// A subset of a sequential string, read in the same order, is there no later than the whole.
    #[test]
    fn skipping_never_takes_longer(
        size in 0usize..6, think in 0usize..7, place in (0usize..16, 0u64..1 << 32),
        stride in prop_oneof![Just(Some(2)), Just(Some(4)), Just(None)],
        keep in prop::collection::vec(0u8..255, 2..150), share in 1u8..255,
    ) {
        let (sectors, think) = (SIZES[size], Nanos(THINKS[think]));
        let chosen = |(number, kept): (usize, u8)| match stride {
            Some(stride) => number % stride == 0,
            None => kept < share,
        };
        let numbers: Vec<u64> = (0..).zip(&keep).filter(|(number, kept)| chosen((*number as usize, **kept)))
            .map(|(number, _)| number).collect();
        prop_assume!(!numbers.is_empty());
        let whole: Vec<u64> = (0..=*numbers.last().unwrap()).collect();
        for (name, buffer) in drives().iter().filter(|(_, buffer)| is_on(buffer, "hit_ahead") || std::env::var("ALL").is_ok()) {
            let mut device = build_device(name, "buffer = {hit_ahead = true}".parse().unwrap()).unwrap();
            let first = begins(&*device, whole.len() as u64 * u64::from(sectors), place);
            let mut other = device.clone();
            let (all, _) = read(&mut *device, first, sectors, &whole, think);
            let (some, _) = read(&mut *other, first, sectors, &numbers, think);
            prop_assert!(some <= all, "{name}: {numbers:?} of {sectors} from {first}: {some} against {all}, {buffer}");
        }
    }

    /// A reader in order that thinks longer waits no longer, but for the turns that a full buffer costs: none where a hit
    /// reads ahead again, one a segment elsewhere.
    #[test]
    fn thinking_longer_never_costs(size in 0usize..4, place in (0usize..16, 0u64..1 << 32)) {
        let sectors = SIZES[size];
        for (name, buffer) in drives() {
            let device = build_device(name, Table::new()).unwrap();
            let mechanics = device.mechanics().unwrap();
            let count = (8 * mechanics.segment_sectors / u64::from(sectors)).clamp(20, 400);
            let numbers: Vec<u64> = (0..count).collect();
            let first = begins(&*device, count * u64::from(sectors), place);
            let means: Vec<u64> = THINKS.iter().map(|think| {
                let (_, responses) = read(&mut *device.clone(), first, sectors, &numbers, Nanos(*think));
                responses.iter().map(|response| response.0).sum::<u64>() / count
            }).collect();
            println!("{name} {sectors} {means:?}");
            let _ = &buffer;
        }
    }
}
