//! The workload: trace files, generators, inline references; and their common keys.

use std::fmt::Write as _;

use headstart_trace::WORKLOADS;
use toml::{Table, Value};

use super::{Draw, Plan};

/// Section `[workload]`, and the text of its trace.
pub fn workload(draw: &mut Draw, plan: &Plan, path: &str) -> (Table, Option<String>) {
    let mut table = Table::new();
    let mut trace = None;
    let mut generated = false;
    match draw.upto(9) {
        _ if plan.pattern => {}
        _ if plan.named => {
            let names = ["A", "b", "C", "d", "E", "F"];
            let read: Vec<Value> = (0..draw.count(30)).map(|_| draw.one_of(&names).into()).collect();
            table.insert("references".into(), read.into());
        }
        0..=6 => {
            table.insert("trace".into(), path.into());
            trace = Some(csv(draw, plan));
        }
        7 => {
            table.insert("trace".into(), path.into());
            let (format, text) = other_format(draw, plan);
            table.insert("format".into(), format.into());
            trace = Some(text);
        }
        _ => generated = true,
    }
    common(draw, plan, &mut table);
    if generated {
        generator(draw, &mut table);
    }
    (table, trace)
}

/// Any generator, with few requests.
fn generator(draw: &mut Draw, table: &mut Table) {
    let row = &WORKLOADS[draw.upto(WORKLOADS.len() as i64 - 1) as usize];
    let defaults = row.keys.defaults();
    table.extend(draw.some_keys(&defaults));
    let mut least = |key: &str, most| {
        if defaults.contains_key(key) {
            table.insert(key.into(), draw.count(most).into());
        }
    };
    least("requests", 8);
    least("passes", 2);
    least("files", 5);
    least("reads", 60);
    least("headers", 20);
    least("lists", 20);
    if ["blocks", "clips"].iter().any(|key| defaults.contains_key(*key)) {
        table.insert("blocks".into(), draw.count(60).into());
        table.retain(|key, _| key != "blocks" || defaults.contains_key("blocks"));
    }
    for key in ["file_size", "size", "index_size"] {
        if defaults.contains_key(key) {
            table.insert(key.into(), draw.size().into());
        }
    }
    table.insert("generator".into(), row.name.into());
    table.insert("limit".into(), draw.count(60).into());
}

/// Keys other than the input.
fn common(draw: &mut Draw, plan: &Plan, table: &mut Table) {
    let mut set = |key: &str, value: Value| {
        table.insert(key.to_owned(), value);
    };
    set("block_size", if plan.objects { "object".into() } else { format!("{}B", plan.block).into() });
    match draw.upto(5) {
        3 => set("compute", "gaps".into()),
        0 => set("compute", "1ms".into()),
        1 => set("compute", "exp:2ms".into()),
        2 => set("compute", draw.time().into()),
        _ => {}
    }
    let total = draw.chance(7) && !plan.pattern;
    if draw.chance(if total { 1 } else { 10 }) {
        set("compute_scale", draw.one_of(&[0.0, 0.5, 3.0]).into());
    }
    if plan.pattern {
        return;
    }
    if total {
        set("compute_total", draw.one_of(&["1ns", "1ms", "20s"]).into());
    }
    if plan.open {
        set("arrival", "open".into());
        if draw.chance(40) {
            set("time_scale", draw.one_of(&[0.0, 1e-9, 0.1, 2.0, 1000.0, 1e12]).into());
        }
    }
    if plan.several {
        set("processes", if plan.dealt { "dealt" } else { "per-pid" }.into());
    }
    if plan.whole {
        set("issue", "whole".into());
    }
    if plan.dirty {
        set("writes", "back".into());
    } else if plan.writes {
        set("writes", "through".into());
    } else if draw.chance(12) {
        set("writes", "skip".into());
    }
    if draw.chance(if plan.named { 2 } else { 50 }) {
        set("placement", placement(draw));
    }
    if draw.chance(20) {
        let addresses = draw.one_of(&["error", "auto", "compact", "compact-chunks"]);
        set("addresses", addresses.into());
        if draw.chance(if addresses == "compact-chunks" { 50 } else { 2 }) {
            set("chunk_blocks", draw.count(9).into());
        }
    }
    if draw.chance(10) {
        set("limit", draw.count(20).into());
    }
}

fn placement(draw: &mut Draw) -> Value {
    let name = draw.one_of(&["address", "address", "table-order", "random-groups", "ffs"]);
    if name != "ffs" || draw.chance(20) {
        return name.into();
    }
    let mut keys = Table::from_iter([("name".to_owned(), Value::from("ffs"))]);
    keys.insert("size".into(), format!("{}MiB", draw.count(60)).into());
    keys.insert("cylinder_group".into(), "1MiB".into());
    keys.insert("direct_blocks".into(), draw.count(12).into());
    keys.insert("fragment".into(), "512B".into());
    keys.insert("opens".into(), draw.one_of(&["before", "read"]).into());
    keys.insert("full".into(), draw.one_of(&[0.0, 0.3, 0.9]).into());
    keys.into()
}

/// The columns of a trace.
const COLUMNS: [&str; 7] = ["time", "op", "pid", "file", "offset", "size", "dur_us"];

/// Requests of several processes for several files, many of them in order, many not aligned to blocks.
fn csv(draw: &mut Draw, plan: &Plan) -> String {
    let some = !plan.several && !plan.open && draw.chance(20);
    let kept: Vec<&str> = COLUMNS.into_iter().filter(|name| !some || ["offset", "size"].contains(name)).collect();
    let (processes, files, span) = (draw.count(4), draw.count(4), draw.count(40));
    // Some traces have large addresses, some have empty requests.
    let base = if draw.chance(3) { draw.one_of(&[1 << 31, 1 << 33, 1 << 40, i64::MAX >> 1]) } else { 0 };
    let least = if draw.chance(2) { 0 } else { 1 };
    let mut text = kept.join(",");
    let mut now = 0;
    let mut last = (0, 0, 0);
    for _ in 0..draw.count(draw_length(plan)) {
        let (file, offset) = match draw.chance(50) {
            true => (last.0, last.1 + last.2),
            false => (draw.upto(files - 1), draw.upto(span) * plan.block as i64 + odd(draw, plan)),
        };
        let size = match draw.upto(3) {
            0 => plan.block as i64,
            1 => draw.count(4) * plan.block as i64,
            2 => (plan.block as i64 - draw.upto(200)).max(least),
            _ => draw.upto(3 * plan.block as i64).max(least),
        };
        last = (file, offset, size);
        now += draw.one_of(&[0, 1, 500, 20_000]);
        let op = if draw.chance(25) { "W" } else { "R" };
        let all = [
            format!("{}.{:06}", now / 1_000_000, now % 1_000_000),
            op.to_owned(),
            draw.count(processes).to_string(),
            file.to_string(),
            (base + offset).to_string(),
            size.to_string(),
            draw.upto(400).to_string(),
        ];
        let line: Vec<&str> =
            COLUMNS.iter().zip(&all).filter(|(name, _)| kept.contains(name)).map(|(_, value)| value.as_str()).collect();
        write!(text, "\n{}", line.join(",")).expect("a string takes all");
    }
    text + "\n"
}

/// A trace of another format: of blocks, or of requests with addresses of sectors or bytes.
fn other_format(draw: &mut Draw, plan: &Plan) -> (&'static str, String) {
    let of_requests = ["spc", "msr"];
    let format =
        if plan.several || plan.open { draw.one_of(&of_requests) } else { draw.one_of(&["lirs", "lis", "spc", "msr"]) };
    let mut text = String::new();
    let mut now = 0_i64;
    for _ in 0..draw.count(40) {
        now += draw.one_of(&[0, 1, 700, 30_000]);
        let (unit, at) = (draw.upto(2), draw.upto(200));
        let size = if draw.chance(50) { plan.block as i64 } else { draw.count(6) * 512 };
        let op = if draw.chance(25) { "Write" } else { "Read" };
        let line = match format {
            "lirs" => draw.upto(30).to_string(),
            "lis" => format!("{} {} 0 0", draw.upto(30), draw.count(3)),
            "spc" => format!("{unit},{at},{size},{},{}.{:06}", &op[..1], now / 1_000_000, now % 1_000_000),
            _ => format!(
                "{},host,{unit},{op},{},{size},{}",
                128_166_372_000_000_000 + 10 * now,
                at * 512,
                draw.upto(9_000)
            ),
        };
        writeln!(text, "{line}").expect("a string takes all");
    }
    (format, text)
}

fn draw_length(plan: &Plan) -> i64 {
    if plan.several {
        60
    } else {
        40
    }
}

fn odd(draw: &mut Draw, plan: &Plan) -> i64 {
    if draw.chance(30) {
        draw.upto(plan.block as i64 - 1)
    } else {
        0
    }
}
