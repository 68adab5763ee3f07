//! Any scenario, drawn from a seed: the text of a scenario file, and the text of its trace.
//!
//! Every row of every registry is drawn, with any of its keys set to small, large, unusual and wrong values.
//! Contradictions are refused, which is part of the test. Workloads are small: most runs take less than a millisecond.

mod draw;
mod machine;
mod workload;

use toml::{Table, Value};

pub use draw::Draw;

/// A scenario and its trace.
pub struct Drawn {
    /// The text of the scenario file.
    pub text: String,
    /// The text of the trace, whose path the scenario has; `None` if it reads none.
    pub trace: Option<String>,
}

/// Decisions about a scenario that restrict further draws.
struct Plan {
    /// Whether processes read a pattern.
    pattern: bool,
    /// Whether arrivals are open.
    open: bool,
    /// Whether there are several processes of a trace.
    several: bool,
    /// Whether there is a section `[process]`.
    program: bool,
    /// Whether files are dealt to processes.
    dealt: bool,
    /// Whether requests are issued whole.
    whole: bool,
    /// Whether written blocks stay dirty for a time.
    dirty: bool,
    /// Whether writes reach the disks, at once or later.
    writes: bool,
    /// Whether blocks have labels.
    named: bool,
    /// Whether the trace's own units are the blocks.
    objects: bool,
    block: u64,
}

/// The scenario of `seed`, with its trace, if it has one, at `path`.
pub fn scenario(seed: u64, path: &str) -> Drawn {
    let mut draw = Draw::new(seed);
    let pattern = draw.chance(12);
    let open = !pattern && draw.chance(12);
    let named = !pattern && !open && draw.chance(10);
    let several = !pattern && !named && draw.chance(45);
    let program = pattern || (!open && draw.chance(35));
    let dirty = !pattern && draw.chance(12);
    let plan = Plan {
        pattern,
        open,
        several,
        program,
        dealt: several && program && draw.chance(25),
        whole: !pattern && draw.chance(40),
        dirty,
        writes: dirty || (!pattern && draw.chance(12)),
        named,
        objects: draw.chance(if named { 20 } else { 3 }),
        block: draw.one_of(&[512, 1024, 4096, 4096, 8192, 8192, 8192]),
    };
    let mut root = Table::new();
    root.insert("seed".into(), draw.upto(9).into());
    let (workload, trace) = workload::workload(&mut draw, &plan, path);
    root.insert("workload".into(), workload.into());
    let policy = machine::policy(&mut draw, &plan);
    machine::levels(&mut draw, &plan, &policy, &mut root);
    if plan.program {
        root.insert("process".into(), machine::process(&mut draw, &plan, &policy).into());
    }
    root.insert("device".into(), machine::device(&mut draw, &plan).into());
    if name_of(&policy) == Some("optimum") && draw.chance(70) {
        let free = Table::from_iter([("driver_overhead".to_owned(), Value::from("0s"))]);
        root.insert("host".into(), free.into());
    } else if !open || draw.chance(10) {
        root.insert("host".into(), machine::host(&mut draw).into());
    }
    Drawn { text: root.to_string(), trace }
}

fn name_of(policy: &Table) -> Option<&str> {
    policy.get("name")?.as_str()
}

/// A table with a name, or the bare name if it has no other keys.
fn named(mut keys: Table, name: &str) -> Value {
    if keys.is_empty() {
        return name.into();
    }
    keys.insert("name".into(), name.into());
    keys.into()
}
