//! 90,000 random 8 KB reads on a Cheetah 9LP with exponential arrivals of mean 15 ms, first come first served, as
//! DiskSim's synthetic run on the same drive: means in ms of seek, rotation, media transfer, their sum, and response.

use headstart_device::{build_device, Device, Request};
use headstart_types::Nanos;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use toml::Table;

const REQUESTS: u32 = 90_000;

#[derive(Debug, Default)]
struct Means {
    seek: f64,
    rotation: f64,
    transfer: f64,
    response: f64,
}

/// A number above 0 and up to 1, even over 2^53 steps.
fn even(generator: &mut ChaCha8Rng) -> f64 {
    ((generator.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
}

fn run(device: &mut dyn Device, seed: u64) -> Means {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    let blocks = device.capacity_sectors().unwrap() / 16;
    let (mut arrival, mut free) = (0.0, Nanos::ZERO);
    let mut sums = Means::default();
    for _ in 0..REQUESTS {
        arrival -= 15e6 * libm::log(even(&mut generator));
        let sector = generator.next_u64() % blocks * 16;
        let arrived = Nanos(arrival as u64);
        let service = device.serve(arrived.max(free), &Request::read(sector, 16, 0));
        free = service.end;
        sums.seek += service.seek.0 as f64;
        sums.rotation += service.rotation.0 as f64;
        sums.transfer += service.transfer.0 as f64;
        sums.response += (service.end - arrived).0 as f64;
    }
    let mean = |sum: f64| sum / 1e6 / f64::from(REQUESTS);
    let Means { seek, rotation, transfer, response } = sums;
    Means { seek: mean(seek), rotation: mean(rotation), transfer: mean(transfer), response: mean(response) }
}

fn near(what: &str, value: f64, expected: f64, percent: f64) {
    println!("{what}: {value:.3} ms, DiskSim {expected}");
    assert!((value / expected - 1.0).abs() * 100.0 <= percent, "{what}: {value:.3} ms against {expected}");
}

#[test]
fn as_disksim_has_it() {
    let means = run(&mut *build_device("seagate-cheetah-9lp", Table::new()).unwrap(), 1);
    near("seek", means.seek, 5.41, 2.0);
    near("rotation", means.rotation, 2.99, 2.0);
    near("response", means.response, 23.98, 5.0);
    near("transfer", means.transfer, 0.63, 2.0);
    near("access", means.seek + means.rotation + means.transfer, 9.04, 2.0);
}
