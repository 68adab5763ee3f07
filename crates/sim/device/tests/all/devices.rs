//! The contract of every device, for every row of the registry, under random load that keeps to it: never more requests
//! in progress than the device serves, time never decreases, requests lie within the capacity.

use headstart_device::{Device, Request};
use headstart_types::Nanos;
use proptest::prelude::*;

use crate::common;
use crate::common::{every_array, every_model};

/// The number of distinct sectors that `load` reads, in any order, and when the last of them has been read.
fn delivered(device: &mut dyn Device, load: &[common::Load]) -> (u64, Nanos) {
    let served = common::drive(device, load);
    let end = served.iter().map(|(_, _, service)| service.end).max().unwrap_or(Nanos::ZERO);
    let mut runs: Vec<(u64, u64)> = served.iter().map(|(_, request, _)| (request.sector, request.end())).collect();
    runs.sort_unstable();
    let (mut sectors, mut reached) = (0, 0);
    for (from, to) in runs {
        sectors += to.saturating_sub(from.max(reached));
        reached = reached.max(to);
    }
    (sectors, end)
}

/// Requests that only read.
fn reads(most: usize) -> impl Strategy<Value = Vec<common::Load>> {
    common::load(most).prop_map(|load| load.into_iter().map(common::Load::into_read).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn every_model_keeps_the_contract(load in common::load(150)) {
        for (name, device) in every_model() {
            common::keeps_the_contract(&name, device, &load)?;
        }
    }

    #[test]
    fn every_array_of_every_model_keeps_the_contract(
        load in common::load(60), members in 1u32..6, unit in prop_oneof![1u64..40, Just(128)],
    ) {
        for model in every_model() {
            for (name, array) in every_array(&model, members, unit) {
                common::keeps_the_contract(&name, array, &load)?;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn nothing_delivers_more_than_its_rate(load in reads(80), members in 1u32..6, unit in prop_oneof![1u64..40, Just(128)]) {
        for model in every_model() {
            let arrays = every_array(&model, members, unit);
            for (name, mut device) in arrays.into_iter().chain([model]) {
                let (sectors, end) = delivered(&mut *device, &load);
                let least = device.least_transfer(sectors);
                prop_assert!(least <= end, "{name}: {sectors} sectors by {end}, the least is {least}");
            }
        }
    }
}

#[test]
fn long_reads_come_near_the_rate_of_all_but_uniform_devices() {
    for (name, mut device) in every_model() {
        let (count, sectors) = (64, 2_048);
        let (mut now, mut end) = (Nanos::ZERO, Nanos::ZERO);
        for index in 0..count {
            // As many concurrently as it serves: all of them begin at the start of a round.
            if index % u64::from(device.concurrency()) == 0 {
                now = end;
            }
            end = end.max(device.serve(now, &Request::read(index * sectors, sectors as u32, 0)).end);
        }
        let least = device.least_transfer(count * sectors);
        match name.as_str() {
            "uniform" => assert_eq!(least, Nanos::ZERO, "2 ms for any amount"),
            // The random time to the first byte of 64 of 256 connections.
            "object-store" => assert!(least > Nanos::ZERO && least <= end),
            _ => assert!(least <= end && end < least * 2, "{name}: {end}, the least is {least}"),
        }
    }
}

/// Devices and arrays of three.
fn everything() -> Vec<(String, Box<dyn Device>)> {
    let models = every_model();
    let arrays: Vec<_> = models.iter().flat_map(|model| every_array(model, 3, 16)).collect();
    models.into_iter().chain(arrays).collect()
}

#[test]
fn the_first_and_the_last_sector_are_served() {
    for (name, mut device) in everything() {
        let Some(capacity) = device.capacity_sectors() else { continue };
        let mut now = Nanos::ZERO;
        for (sector, write) in [(0, false), (capacity - 1, false), (capacity - 1, true), (0, true), (0, false)] {
            let service = device.serve(now, &Request { write, ..Request::read(sector, 1, 0) });
            assert!(service.end >= now + device.least_service(1), "{name}");
            assert_eq!(device.head_sector(), sector + 1, "{name}");
            now = service.end;
        }
    }
}

#[test]
fn least_service_grows_with_the_request() {
    for (name, device) in everything() {
        let mut before = Nanos::ZERO;
        for sectors in [1, 2, 7, 8, 9, 16, 100, 4096, 1 << 20, 1 << 28, u32::MAX] {
            let least = device.least_service(sectors);
            assert!(before <= least && least < Nanos(u64::MAX / 4), "{name}: {sectors} sectors take {least}");
            before = least;
        }
    }
}
