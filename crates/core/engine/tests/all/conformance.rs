//! Promises of every row of the registry, on edge-case systems: each reference is served, the counts balance after
//! every event (the host checks), the same system gives the same decisions, and no undisclosed reference is acted on.

use headstart_policy::registry::{PolicyRow, ReplacementRow};
use headstart_policy::{Disclosure, Event, Fetch, View};
use headstart_types::{Block, Nanos};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::host;
use crate::host::{build, check, disclosures, is_hinted, misled, odd_systems, rows, run, Outcomes, System};

/// Runs a row twice; decisions must be the same.
fn twice(
    what: &str,
    system: &System,
    row: &PolicyRow,
    replacement: &'static ReplacementRow,
    keys: &str,
    disclosure: &Disclosure,
) -> Outcomes {
    let first = run(system, build(system, row, replacement, keys, disclosure));
    let second = run(system, build(system, row, replacement, keys, disclosure));
    assert_eq!(first, second, "{what}: same system, same decisions");
    check(what, system, &first);
    first
}

fn discloses_nothing(disclosure: &Disclosure) -> bool {
    match disclosure {
        Disclosure::All => false,
        Disclosure::Window(window) => *window == 0,
        Disclosure::Subset(disclosed) => !disclosed.contains(&true),
    }
}

/// Every row except `optimum`, which has its own test, with all disclosures that it accepts.
fn all_rows(name: &str, system: &System) {
    for (row, replacement) in rows().into_iter().filter(|(row, _)| row.name != "optimum") {
        let ways = match is_hinted(row, replacement) {
            true => disclosures(system.refs.len(), system.seed),
            false => vec![Disclosure::All],
        };
        for disclosure in ways {
            let what = format!("{name}: {} ({}), {disclosure:?}, {system:?}", row.name, replacement.name);
            let outcomes = twice(&what, system, row, replacement, "", &disclosure);
            if discloses_nothing(&disclosure) || row.name == "demand" {
                assert_eq!(outcomes.counts.prefetches, 0, "{what}: nothing to prefetch");
                assert_eq!(outcomes.counts.demand_fetches, outcomes.counts.misses, "{what}");
            }
        }
    }
}

#[test]
fn odd_systems_survive() {
    odd_systems().iter().for_each(|(name, system)| all_rows(name, system));
}

#[test]
fn random_systems_survive() {
    for seed in 0..300 {
        all_rows("random", &System::random(seed, 120, 25));
    }
}

/// A policy must survive hints that are wrong.
#[test]
fn wrong_hints_are_survived() {
    let random = (0..300).map(|seed| System::random(seed, 120, 25));
    let mut differ = 0;
    for system in odd_systems().into_iter().map(|(_, system)| system).chain(random) {
        let said = misled(&system);
        for (row, replacement) in rows().into_iter().filter(|(row, _)| row.name != "optimum") {
            for disclosure in
                disclosures(system.refs.len(), system.seed).into_iter().filter(|_| is_hinted(row, replacement))
            {
                let what = format!("{} ({}), {disclosure:?}, {:?}, {system:?}", row.name, replacement.name, said.refs);
                let run_once = || run(&system, build(&said, row, replacement, "", &disclosure));
                let (first, second) = (run_once(), run_once());
                assert_eq!(first, second, "{what}: same system, same decisions");
                check(&what, &system, &first);
                if discloses_nothing(&disclosure) {
                    let told = run(&system, build(&system, row, replacement, "", &disclosure));
                    assert_eq!(first, told, "{what}: what is not said cannot be wrong");
                }
                differ += usize::from(
                    first.decisions != run(&said, build(&said, row, replacement, "", &disclosure)).decisions,
                );
            }
        }
    }
    assert!(differ > 1_000, "{differ} runs saw that a hint was wrong");
}

#[test]
fn hinted_policies_survive_every_setting() {
    let settings = [
        ("fixed-horizon", vec!["horizon = 0", "horizon = 1", "horizon = 4294967295"]),
        ("aggressive", vec!["batch_size = 1", "batch_size = 4294967295"]),
        (
            "forestall",
            vec![
                "fetch_ratio = 0",
                "fetch_ratio = inf\nbatch_size = 1",
                "fetch_ratio = 3.7\nhorizon = 0\nlookahead = 4294967295",
                "lookahead = 0\nhorizon = 0",
                "lookahead = 1\nhorizon = 4294967295\nbatch_size = 1",
            ],
        ),
        (
            "reverse-aggressive",
            vec!["fetch_ratio = 0.001\nbatch_size = 1", "fetch_ratio = 1e6", "forward_batch_size = 1\nbatch_size = 9"],
        ),
        (
            "tip2",
            vec![
                "horizon = 1",
                "horizon = 4294967295",
                "partition = 0.0",
                "partition = 0.5\nhorizon = 3",
                "partition = 1.0\nhorizon = 4294967295",
            ],
        ),
    ];
    let mut systems: Vec<System> = (0..60).map(|seed| System::random(seed, 90, 20)).collect();
    systems.extend(odd_systems().into_iter().map(|(_, system)| system));
    for (row, replacement) in rows() {
        let Some((_, keys)) = settings.iter().find(|(name, _)| *name == row.name) else { continue };
        for (system, keys) in systems.iter().flat_map(|system| keys.iter().map(move |keys| (system, keys))) {
            for disclosure in disclosures(system.refs.len(), system.seed) {
                let what = format!("{} {keys:?} {disclosure:?} {system:?}", row.name);
                twice(&what, system, row, replacement, keys, &disclosure);
            }
        }
    }
}

#[test]
fn the_optimum_and_the_mirror_survive_uniform_systems() {
    let even = |system: System| {
        let think_ns = vec![1_000; system.refs.len()];
        System { think_ns, service_ns_max: 1_000 * (1 + system.seed % 7), uniform: true, ..system }
    };
    for seed in 0..400 {
        let system = System::random(seed, 10, 5);
        if system.disks > 4 {
            continue;
        }
        let system = even(system);
        for (row, replacement) in rows() {
            if let "optimum" | "reverse-aggressive" = row.name {
                twice(&format!("{} {system:?}", row.name), &system, row, replacement, "", &Disclosure::All);
            }
        }
    }
}

/// The decisions before `cursor`.
fn before(outcomes: &Outcomes, cursor: u32) -> Vec<host::Decision> {
    outcomes.decisions.iter().copied().filter(|decision| decision.1 < cursor).collect()
}

#[test]
fn nothing_undisclosed_is_acted_on() {
    let mut compared = 0;
    for seed in 0..250 {
        let system = System::random(seed, 120, 25);
        let length = system.refs.len();
        let mut rng = ChaCha8Rng::seed_from_u64(!seed);
        // The same past, with a different future.
        let cut = rng.random_range(0..length);
        let other = |position: usize, rng: &mut ChaCha8Rng| match position < cut {
            true => system.refs[position],
            false => rng.random_range(0..system.disk_of.len() as u32),
        };
        let changed: Vec<u32> = (0..length).map(|position| other(position, &mut rng)).collect();
        for (row, replacement) in rows().into_iter().filter(|(row, _)| row.name != "optimum") {
            for disclosure in disclosures(length, seed) {
                let (refs, until) = match &disclosure {
                    // On-line, every future is undisclosed; hinted with everything disclosed, none is.
                    _ if !is_hinted(row, replacement) => (changed.clone(), cut),
                    Disclosure::All => continue,
                    Disclosure::Window(window) => {
                        (changed.clone(), (cut + 1).saturating_sub((*window).max(1) as usize))
                    }
                    Disclosure::Subset(known) => {
                        let keep = |at: usize| if known[at] { system.refs[at] } else { changed[at] };
                        ((0..length).map(keep).collect(), cut)
                    }
                };
                let twin = System { refs, ..system.clone() };
                let ours = run(&system, build(&system, row, replacement, "", &disclosure));
                let theirs = run(&twin, build(&twin, row, replacement, "", &disclosure));
                let (ours, theirs) = (before(&ours, until as u32), before(&theirs, until as u32));
                assert_eq!(ours, theirs, "seed {seed}, {} {}, {disclosure:?}", row.name, replacement.name);
                compared += ours.len();
            }
        }
    }
    assert!(compared > 100_000, "{compared} decisions compared");
}

/// A policy that breaks a promise in one way.
#[derive(Clone, Copy)]
enum Broken {
    /// Evicts before frames are used up.
    Hasty,
    /// Fetches a resident block.
    Again,
    /// Never fetches.
    Idle,
}

impl headstart_policy::Policy for Broken {
    fn on(&mut self, _: Nanos, event: Event, view: &View<'_>, fetches: &mut Vec<Fetch>) {
        let Event::Asked { .. } = event else { return };
        let block = view.asked[0];
        match self {
            Broken::Hasty => fetches.push(Fetch { block, victim: Some(Block(0)) }),
            Broken::Again => fetches.extend([Fetch { block, victim: None }; 2]),
            Broken::Idle => {}
        }
    }

    fn grow(&mut self, _: usize) {}
}

#[test]
fn what_breaks_a_promise_is_found() {
    for broken in [Broken::Hasty, Broken::Again, Broken::Idle] {
        let made = || headstart_engine::conformance::policy(|_| Box::new(broken));
        assert!(std::panic::catch_unwind(made).is_err());
    }
}
