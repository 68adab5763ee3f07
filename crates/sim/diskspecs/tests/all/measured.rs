//! Measured drives, shipped and imported, compared with their measurements: 10,000 requests each. Skipped with a note
//! if the drives' files are missing.

use std::io::Read;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use headstart_device::{build_device, replay, rms_demerit, Device, Mechanical, Timed};
use headstart_diskspecs::import;
use headstart_types::Nanos;
use toml::Table;

/// A drive of the set.
struct Drive {
    /// The name of its files.
    name: &'static str,
    /// The shipped model, if there is one.
    shipped: Option<&'static str>,
    /// Requests of its trace.
    requests: usize,
    /// DiskSim's published demerit against the same measurements, in ms.
    published: f64,
    /// The allowed range of our demerit as a share of it. The upper limit preserves the present quality; a lower limit
    /// requires ours to equal DiskSim's, not to be better by chance.
    share: (f64, f64),
}

#[allow(clippy::approx_constant)] // 0.318 ms are not 1 / pi.
const DRIVES: [Drive; 6] = [
    drive("cheetah9LP", Some("seagate-cheetah-9lp"), 10_000, 0.107, (0.0, 1.03)),
    drive("cheetah4LP", Some("seagate-cheetah-4lp"), 10_000, 0.318, (0.0, 1.01)),
    drive("barracuda", Some("seagate-barracuda-st32171w"), 10_000, 0.349, (0.0, 1.02)),
    // Ours is much nearer to the measured times than the published figure.
    drive("atlas10k", Some("quantum-atlas-10k"), 10_000, 0.268, (0.0, 0.36)),
    drive("hp_c2247a", None, 9_999, 0.090, (0.0, 1.15)),
    drive("hp_c2490a", None, 9_984, 0.254, (0.98, 1.02)),
];

const fn drive(
    name: &'static str,
    shipped: Option<&'static str>,
    requests: usize,
    published: f64,
    share: (f64, f64),
) -> Drive {
    Drive { name, shipped, requests, published, share }
}

/// The requests of a trace with their measured times: `R|W CACHE LBN sectors service_us gap_us`.
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

/// Where the drives' files are.
fn folder() -> Option<PathBuf> {
    let disks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/disks");
    if disks.exists() {
        return Some(disks);
    }
    // Bypasses the capture of passing tests' output.
    let _ = writeln!(
        std::io::stderr(),
        "SKIPPED: {} is not there: nothing was compared with measured drives",
        disks.display()
    );
    None
}

#[test]
fn replaying_the_measured_requests() {
    let Some(disks) = folder() else { return };
    let mut wrong = Vec::new();
    for Drive { name, shipped, requests, published, share } in DRIVES {
        let (timed, measured) = trace(&disks.join(format!("{name}.trace.xz")));
        assert_eq!(timed.len(), requests, "{name}");
        let imported = import(&disks.join(format!("{name}.parv"))).unwrap();
        let imported = Mechanical::from_table(imported.profile.parse().unwrap()).unwrap();
        let shipped = shipped.map(|model| (model, build_device(model, Table::new()).unwrap()));
        let devices = [Some(("imported", Box::new(imported) as Box<dyn Device>)), shipped];
        for (model, mut device) in devices.into_iter().flatten() {
            let modelled: Vec<Nanos> = replay(&mut *device, timed.iter().copied()).map(|(took, _)| took).collect();
            let demerit = rms_demerit(&measured, &modelled) / 1e6;
            let mean = |times: &[Nanos]| times.iter().map(|time| time.0 as f64).sum::<f64>() / times.len() as f64 / 1e6;
            println!(
                "{name} ({model}): demerit {demerit:.4} ms (DiskSim {published:.3}), mean {:.3} measured, {:.3} modelled",
                mean(&measured),
                mean(&modelled)
            );
            if !(share.0 * published..=share.1 * published).contains(&demerit) {
                wrong
                    .push(format!("{name} ({model}): {demerit:.4} ms against {published:.3}, allowed {share:?} of it"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
