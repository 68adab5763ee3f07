//! The shipped profiles of measured drives against what was measured on them: 10,000 requests each.

use std::io::Read;
use std::path::Path;

use headstart_device::{build_device, replay, rms_demerit, Timed};
use headstart_types::Nanos;
use toml::Table;

/// Model, trace and DiskSim's published demerit in microseconds.
const DRIVES: [(&str, &str, u32); 4] = [
    ("seagate-cheetah-9lp", "cheetah9LP", 107),
    ("seagate-cheetah-4lp", "cheetah4LP", 318),
    ("seagate-barracuda-st32171w", "barracuda", 349),
    ("quantum-atlas-10k", "atlas10k", 268),
];

/// The requests of a trace with their measured times: `R|W Hit|Miss LBN sectors service_us gap_us`.
fn trace(path: &Path) -> (Vec<Timed>, Vec<Nanos>) {
    let file = std::fs::File::open(path).unwrap();
    let mut text = String::new();
    liblzma::read::XzDecoder::new(file).read_to_string(&mut text).unwrap();
    let micros = |field: &str| Nanos::from_millis_f64(field.parse::<f64>().unwrap() / 1e3);
    let line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (sector, sectors) = (fields[2].parse().unwrap(), fields[3].parse().unwrap());
        (Timed { write: fields[0] == "W", sector, sectors, gap: micros(fields[5]) }, micros(fields[4]))
    };
    text.lines().map(line).unzip()
}

#[test]
fn replaying_the_measured_requests() {
    let disks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/disks");
    if !disks.exists() {
        eprintln!("SKIPPED: {} is not there: nothing was compared with measured drives", disks.display());
        return;
    }
    for (model, name, published) in DRIVES {
        let published = f64::from(published) / 1e3;
        let (requests, measured) = trace(&disks.join(format!("{name}.trace.xz")));
        assert_eq!(requests.len(), 10_000);
        let mut device = build_device(model, Table::new()).unwrap();
        let modelled: Vec<Nanos> = replay(&mut *device, requests.iter().copied()).map(|(took, _)| took).collect();
        let demerit = rms_demerit(&measured, &modelled) / 1e6;
        let mean = |times: &[Nanos]| times.iter().map(|time| time.0 as f64).sum::<f64>() / times.len() as f64 / 1e6;
        println!(
            "{model}: demerit {demerit:.3} ms (DiskSim {published:.3}), mean {:.3} measured, {:.3} modelled",
            mean(&measured),
            mean(&modelled)
        );
        assert!(demerit <= 1.5 * published, "{model}: {demerit:.3} ms against {published:.3}");
    }
}
