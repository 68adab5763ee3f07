//! Traces of object numbers: nothing is read ahead by position, and adjacent numbers are not adjacent blocks.

use headstart_policy::registry::{Family, POLICIES};

use crate::common::{self, Trace};

/// A trace of objects in this order, two thousand of them at most.
fn trace(name: &str, objects: impl Iterator<Item = u64>) -> Trace {
    let lines: Vec<String> = objects.map(|object| object.to_string()).collect();
    Trace::of_text(name, &format!("id\n{}\n", lines.join("\n")))
}

fn scenario(trace: &Trace, policy: &str, device: &str) -> String {
    let path = trace.path();
    format!(
        "workload = {{trace = \"{path}\", format = \"csv\"}}\ncache = {{blocks = 64}}\npolicy = {policy}\n\
         device = {{model = \"{device}\"}}\n"
    )
}

#[test]
fn every_policy_by_position_is_refused_and_the_others_run() {
    let trace = trace("object-ids", 0..200);
    for row in POLICIES.iter().filter(|row| row.name != "optimum" && !row.is_parallel()) {
        let by_position = match row.family {
            Family::ReadAhead(_) => true,
            _ => matches!(row.name, "leap" | "patterns"),
        };
        let result = common::try_run(common::table(&scenario(&trace, &format!("{:?}", row.name), "nvme")));
        match result {
            Ok(report) => {
                assert!(!by_position, "{}", row.name);
                assert_eq!(report.counts.references, 200, "{}", row.name);
            }
            Err(error) => {
                assert!(by_position, "{}: {error}", row.name);
                let begins =
                    format!("policy.name: {} reads ahead by position, and the trace has no addresses", row.name);
                assert!(error.starts_with(&begins) && error.contains("; allowed: "), "{error}");
            }
        }
    }
    // With this key a predictor reads the next block too.
    let next = common::try_run(common::table(&scenario(&trace, "{name = \"mithril\", sequential = 2}", "nvme")));
    assert!(next.expect_err("by position").starts_with("policy.name: mithril reads ahead by position"));
}

#[test]
fn a_lower_level_and_a_coordinator_are_refused_too() {
    let trace = trace("object-ids-levels", 0..200);
    let levels = |policy: &str, coordinator: &str| {
        let text = format!(
            "workload = {{trace = \"{}\", format = \"csv\"}}\ndevice = \"nvme\"\n[[level]]\nname = \"L1\"\nblocks = 8\n\
             [[level]]\nname = \"L2\"\nblocks = 64\npolicy = \"{policy}\"\ncoordinator = {coordinator}\n",
            trace.path()
        );
        common::try_run(common::table(&text)).map(|_| ())
    };
    assert_eq!(levels("demand", "\"du\""), Ok(()));
    assert_eq!(levels("demand", "{name = \"pfc\", actions = \"bypass\"}"), Ok(()));
    let refused = |result: Result<(), String>, key: &str| {
        let error = result.expect_err(key);
        assert!(error.starts_with(key), "{error}");
    };
    refused(levels("linux", "\"none\""), "level[1].policy.name: linux reads ahead by position");
    refused(levels("demand", "\"pfc\""), "level[1].coordinator.name: pfc reads ahead by position");
}

#[test]
fn objects_are_fetched_one_by_one_whatever_their_numbers() {
    // 1,000 objects in order of their numbers, and numbered by steps of 7: neighbours would be gathered into one
    // request. An object store takes as long wherever an object is; which channel of a drive serves it depends on the
    // place.
    for policy in ["\"just-in-time\"", "\"forestall\"", "\"stable-successor\""] {
        let run = |name: &str, step: u64| {
            let trace = trace(&format!("object-{name}"), (0..2_000).map(|at| at % 1_000 * step));
            common::run(&scenario(&trace, policy, "object-store"))
        };
        let (ordered, apart) = (run("ordered", 1), run("apart", 7));
        assert_eq!(ordered.devices[0].requests, ordered.counts.fetches, "{policy}");
        assert_eq!(ordered.devices[0].requests, apart.devices[0].requests, "{policy}");
        assert_eq!(ordered.elapsed_ns, apart.elapsed_ns, "{policy}");
    }
}

#[test]
fn addresses_that_the_scenario_gives_itself_stay_addresses() {
    let inline =
        "workload = {references = [\"A\", \"B\", \"A\"]}\ncache = {blocks = 2}\npolicy = \"obl\"\ndevice = \"nvme\"\n";
    assert_eq!(common::run(inline).counts.references, 3);
}
