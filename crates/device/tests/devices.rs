//! What every device promises, for every row of the registry, under random load that keeps to the contract: never
//! more in progress than the device serves at once, time never backwards, requests within the capacity.

mod common;

use common::{every_array, every_model};
use headstart_device::{Device, Request};
use headstart_types::Nanos;
use proptest::prelude::*;

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
