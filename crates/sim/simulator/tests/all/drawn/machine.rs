//! The machine: policies, levels, processes, disks, costs.

use headstart_device::{ARRAYS, MODELS, SCHEDULERS};
use headstart_policy::registry::{read_aheads, PolicyRow, COORDINATORS, POLICIES, REPLACEMENTS};
use headstart_trace::patterns::PATTERNS;
use toml::{Table, Value};

use super::{named, Draw, Plan};

/// Any policy that may be valid, with its keys, as a table with a name.
pub fn policy(draw: &mut Draw, plan: &Plan) -> Table {
    let hinted: Vec<_> = POLICIES.iter().filter(|row| row.is_hinted()).collect();
    let mut keys;
    let by_blocks = !plan.whole || draw.chance(2);
    let name = match draw.upto(9) {
        0..=5 if plan.pattern => {
            keys = Table::new();
            "rapid-transit"
        }
        0..=2 if plan.program => {
            keys = Table::new();
            "rapid-transit"
        }
        0..=4 if !plan.pattern && !plan.open && by_blocks => {
            let row = hinted[draw.upto(hinted.len() as i64 - 1) as usize];
            keys = draw.some_keys(&row.keys.defaults());
            draw.computed_keys(row, &mut keys);
            hints(draw, plan, &mut keys);
            row.name
        }
        3..=8 if !plan.pattern || draw.chance(3) => {
            let row = read_ahead(draw);
            keys = draw.some_keys(&row.keys.defaults());
            row.name
        }
        _ => {
            keys = Table::new();
            "demand"
        }
    };
    let chooses = hinted.iter().any(|row| row.name == name) || name == "sarc";
    let often = if name == "rapid-transit" { 25 } else { 60 };
    if draw.chance(if chooses { 2 } else { often }) {
        let (replacement, value) = replacement(draw);
        if replacement == "min" {
            hints(draw, plan, &mut keys);
        }
        keys.insert("replacement".into(), value);
    }
    keys.insert("name".into(), name.into());
    keys
}

fn read_ahead(draw: &mut Draw) -> &'static PolicyRow {
    let all: Vec<_> = read_aheads().collect();
    all[draw.upto(all.len() as i64 - 1) as usize]
}

fn replacement(draw: &mut Draw) -> (&'static str, Value) {
    let row = &REPLACEMENTS[draw.upto(REPLACEMENTS.len() as i64 - 1) as usize];
    // Programs are designed for this one.
    let name = if draw.chance(15) { "ru-set" } else { row.name };
    let row = REPLACEMENTS.iter().find(|row| row.name == name).expect("it is there");
    (row.name, named(draw.some_keys(&row.keys.defaults()), row.name))
}

fn hints(draw: &mut Draw, plan: &Plan, keys: &mut Table) {
    let mut hints = match draw.upto(7) {
        0 => Table::from_iter([("window".to_owned(), Value::from(draw.upto(30)))]),
        1 => {
            let fraction = draw.one_of(&[0.0, 0.4, 0.9, 1.0]);
            Table::from_iter([("fraction".to_owned(), fraction.into()), ("seed".to_owned(), draw.upto(5).into())])
        }
        2 => Table::from_iter([
            ("wrong".to_owned(), Value::from(draw.one_of(&[0.0, 0.2, 1.0]))),
            ("reordered".to_owned(), Value::from(draw.one_of(&[0.0, 0.3, 1.0]))),
        ]),
        _ if plan.several && draw.chance(50) => Table::new(),
        _ => return,
    };
    if plan.several && (hints.is_empty() || draw.chance(30)) {
        let numbers: Vec<Value> = (0..draw.upto(2)).map(|_| draw.upto(1).into()).collect();
        hints.insert("processes".into(), numbers.into());
    }
    keys.insert("hints".into(), hints.into());
}

/// `[cache]` and `[policy]`, or several levels.
pub fn levels(draw: &mut Draw, plan: &Plan, policy: &Table, root: &mut Table) {
    let mut first = Table::new();
    match draw.upto(5) {
        // Written and requested blocks together do not fit.
        _ if plan.writes && draw.chance(40) => drop(first.insert("blocks".into(), draw.count(3).into())),
        0 => drop(first.insert("footprint".into(), draw.one_of(&[0.01, 0.3, 1.0, 2.0]).into())),
        1 => drop(first.insert("size".into(), format!("{}B", plan.block as i64 * draw.count(20)).into())),
        2 => drop(first.insert("blocks".into(), draw.count(3).into())),
        _ => drop(first.insert("blocks".into(), draw.count(40).into())),
    }
    if draw.chance(if plan.dirty { 60 } else { 1 }) {
        first.insert("write_delay".into(), draw.time().into());
    }
    if plan.dirty && draw.chance(40) {
        first.insert("write_cluster".into(), format!("{}B", plan.block as i64 * draw.count(9)).into());
    }
    if draw.chance(if plan.named { 50 } else { 1 }) {
        first.insert("initial".into(), vec![Value::from("A"), Value::from("b")].into());
    }
    if draw.chance(65) {
        root.insert("cache".into(), first.into());
        root.insert("policy".into(), policy.clone().into());
        return;
    }
    first.insert("policy".into(), policy.clone().into());
    let mut all = vec![Value::from(first)];
    let (mut sole, servers_at) = (false, draw.upto(3));
    for at in 0..draw.count(2) {
        let mut level = lower(draw, plan);
        if sole {
            level.remove("clients");
        } else if at == servers_at && draw.chance(50) {
            sole = true;
            level.insert("servers".into(), draw.count(3).into());
            if level["servers"].as_integer() != Some(1) {
                let unit =
                    if draw.chance(30) { "file".to_owned() } else { format!("{}B", plan.block as i64 * draw.count(6)) };
                level.insert("unit".into(), unit.into());
            }
        }
        all.push(level.into());
    }
    root.insert("level".into(), all.into());
}

fn lower(draw: &mut Draw, plan: &Plan) -> Table {
    let mut level = Table::new();
    match draw.upto(4) {
        0 => {
            let ratio = Table::from_iter([("ratio".to_owned(), Value::from(draw.one_of(&[0.0, 0.5, 2.0])))]);
            level.insert("size".into(), ratio.into());
        }
        1 => drop(level.insert("footprint".into(), 0.5.into())),
        _ => drop(level.insert("blocks".into(), draw.upto(30).into())),
    }
    if plan.several && draw.chance(50) {
        level.insert("clients".into(), draw.count(3).into());
    }
    if draw.chance(25) {
        level.insert("separate_prefetch".into(), draw.chance(80).into());
    }
    let row = read_ahead(draw);
    if draw.chance(60) {
        level.insert("policy".into(), named(draw.some_keys(&row.keys.defaults()), row.name));
    }
    let policy = level.get("policy").and_then(|policy| policy.as_str().or(policy.get("name")?.as_str()));
    if draw.chance(if policy == Some("sarc") { 2 } else { 40 }) {
        level.insert("replacement".into(), replacement(draw).1);
    }
    if draw.chance(60) {
        let row = &COORDINATORS[draw.upto(COORDINATORS.len() as i64 - 1) as usize];
        level.insert("coordinator".into(), named(draw.some_keys(&row.keys.defaults()), row.name));
    }
    if draw.chance(60) {
        let costs = [("alpha".to_owned(), Value::from(draw.time())), ("beta".to_owned(), draw.time().into())];
        level.insert("link".into(), Table::from_iter(costs).into());
    }
    level
}

/// `[process]`.
pub fn process(draw: &mut Draw, plan: &Plan, policy: &Table) -> Table {
    let mut keys = Table::new();
    if plan.pattern {
        let row = &PATTERNS[draw.upto(PATTERNS.len() as i64 - 1) as usize];
        let mut pattern = draw.some_keys(&row.keys.defaults());
        let count = draw.count(6);
        pattern.insert("reads".into(), (count + draw.upto(60)).into());
        pattern.insert("blocks".into(), draw.count(60).into());
        keys.insert("pattern".into(), named(pattern, row.name));
        keys.insert("count".into(), count.into());
    } else if plan.dealt || draw.chance(2) {
        keys.insert("count".into(), draw.count(4).into());
    }
    let every = draw.count(4);
    let barrier = match draw.upto(4) {
        0 => Value::from("none"),
        1 if plan.pattern => "portion".into(),
        at => {
            let scope = if at == 4 { "all" } else { "process" };
            Table::from_iter([("every".to_owned(), Value::from(every)), ("scope".to_owned(), scope.into())]).into()
        }
    };
    keys.insert("barrier".into(), barrier);
    if draw.chance(30) {
        keys.insert("contention".into(), draw.time().into());
    }
    if draw.chance(20) {
        keys.insert("remote_cost".into(), draw.time().into());
        keys.insert("buffer_place".into(), draw.one_of(&["shared", "requester", "disk"]).into());
    }
    if policy["name"].as_str() == Some("rapid-transit") {
        let mut set = |draw: &mut Draw, key: &str, value: Value| {
            if draw.chance(40) {
                keys.insert(key.to_owned(), value);
            }
        };
        let action = draw.one_of(&["0s", "3ms", "uniform:1ms:16ms"]);
        set(draw, "prefetch_action", action.into());
        let issues = draw.one_of(&["start", "end"]);
        set(draw, "action_issues", issues.into());
        let least = draw.time();
        set(draw, "min_time", least.into());
        let lead = draw.upto(6);
        set(draw, "min_lead", lead.into());
        let buffers = draw.upto(8);
        set(draw, "buffers", buffers.into());
        let slack = draw.upto(3);
        set(draw, "min_slack", slack.into());
        let order = draw.one_of(&["longest", "shortest", "number", "slack"]);
        set(draw, "idle_order", order.into());
        let scope = draw.one_of(&["look-ups", "all"]);
        set(draw, "contention_scope", scope.into());
        if draw.chance(20) {
            keys.insert("io_processors".to_owned(), draw.count(3).into());
        }
        let (others, first) = draw.one_of(&[(true, "critical"), (true, "own"), (false, "own")]);
        if draw.chance(60) && (others || !keys.contains_key("io_processors")) {
            keys.insert("for_others".to_owned(), others.into());
            keys.insert("prefetch_for".to_owned(), first.into());
        }
    }
    keys
}

/// `[device]`.
pub fn device(draw: &mut Draw, plan: &Plan) -> Table {
    let mut keys = Table::new();
    let model = match draw.upto(9) {
        0..=5 => "uniform",
        6 | 7 => "hp97560",
        _ => MODELS[draw.upto(MODELS.len() as i64 - 1) as usize].name,
    };
    keys.insert("model".into(), model.into());
    if let Some(row) = MODELS.iter().find(|row| row.name == model).filter(|_| draw.chance(8)) {
        keys.extend(draw.some_keys(&row.keys.defaults()));
    }
    if model == "uniform" && draw.chance(99) {
        keys.insert("fetch_time".into(), format!("{}us", draw.count(20_000)).into());
    }
    let count = if draw.chance(5) { draw.count(40) } else { draw.count(5) };
    keys.insert("count".into(), count.into());
    if draw.chance(25) {
        let row = &ARRAYS[draw.upto(ARRAYS.len() as i64 - 1) as usize];
        keys.insert("array".into(), row.name.into());
        if draw.chance(if row.is_independent() { 2 } else { 25 }) {
            keys.insert("failed".into(), draw.upto(count - 1).into());
        }
    } else if plan.named && draw.chance(40) {
        keys.insert("layout".into(), layout(draw, count));
    }
    if draw.chance(40) {
        keys.insert("stripe_unit".into(), format!("{}B", plan.block as i64 * draw.count(6)).into());
    }
    let scheduler = |draw: &mut Draw| {
        let row = &SCHEDULERS[draw.upto(SCHEDULERS.len() as i64 - 1) as usize];
        named(draw.some_keys(&row.keys.defaults()), row.name)
    };
    if draw.chance(60) {
        keys.insert("scheduler".into(), scheduler(draw));
    }
    if draw.chance(20) {
        keys.insert("queue_depth".into(), draw.count(40).into());
        if draw.chance(if keys.contains_key("array") { 3 } else { 50 }) {
            keys.insert("drive_scheduler".into(), scheduler(draw));
        }
    }
    if draw.chance(4) {
        let segments = match draw.count(3) {
            1 => "streams".into(),
            2 => "open-files".into(),
            _ => draw.count(6).into(),
        };
        keys.insert("cache_segments".into(), segments);
    }
    keys
}

/// Every label of the inline references, each on one of `count` disks.
fn layout(draw: &mut Draw, count: i64) -> Value {
    let mut disks = vec![Vec::new(); count as usize];
    for name in ["A", "b", "C", "d", "E", "F"] {
        disks[draw.upto(count - 1) as usize].push(Value::from(name));
    }
    disks.into_iter().map(Value::Array).collect::<Vec<_>>().into()
}

/// `[host]`.
pub fn host(draw: &mut Draw) -> Table {
    let mut keys = Table::new();
    for key in ["driver_overhead", "hit_time", "system_call", "copy_per_kib"] {
        if draw.chance(40) {
            keys.insert(key.into(), draw.time().into());
        }
    }
    keys
}
