//! Any scenario, drawn from a seed: the text of a scenario file, and the text of the trace that it reads.
//!
//! Every row of every registry comes up, with any of its keys set to small, large, odd and wrong values. What
//! contradicts itself is refused, which is part of the test. Workloads are small: most runs take less than a
//! millisecond.

mod draw;
mod machine;
mod workload;

use toml::{Table, Value};

pub use draw::Draw;

/// A scenario and its trace.
pub struct Drawn {
    /// The text of the scenario file.
    pub text: String,
    /// The text of the trace, whose path the scenario has; `None` where it reads none.
    pub trace: Option<String>,
}

/// What has been decided of a scenario and restricts what else can be drawn.
struct Plan {
    /// Processes read a pattern.
    pattern: bool,
    /// Arrivals by the clock.
    open: bool,
    /// Several processes of a trace.
    several: bool,
    /// There is a section `[process]`.
    program: bool,
    /// Files are dealt out to processes.
    dealt: bool,
    /// Requests are asked for as wholes.
    whole: bool,
    /// Written blocks stay dirty for a time.
    dirty: bool,
    /// Blocks have names.
    named: bool,
    /// Bytes of a block.
    block: u64,
}

/// The scenario of `seed`, whose trace, if it has one, lies at `path`.
pub fn scenario(seed: u64, path: &str) -> Drawn {
    let mut draw = Draw::new(seed);
    let pattern = draw.chance(12);
    let open = !pattern && draw.chance(12);
    let named = !pattern && !open && draw.chance(10);
    let several = !pattern && !named && draw.chance(45);
    let program = pattern || (!open && draw.chance(35));
    let plan = Plan {
        pattern,
        open,
        several,
        program,
        dealt: several && program && draw.chance(25),
        whole: !pattern && draw.chance(40),
        dirty: !pattern && draw.chance(12),
        named,
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
    if !open || draw.chance(10) {
        root.insert("host".into(), machine::host(&mut draw).into());
    }
    Drawn { text: root.to_string(), trace }
}

/// A table with a name: the bare name, where nothing else is in it.
fn named(mut keys: Table, name: &str) -> Value {
    if keys.is_empty() {
        return name.into();
    }
    keys.insert("name".into(), name.into());
    keys.into()
}
