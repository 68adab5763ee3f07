//! The profile as text: mechanics, layout and electronics, with the origin of each group of numbers.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use headstart_device::limits::{CYLINDERS_MAX, NAME_CHARACTERS_MAX, RPM_MAX, SURFACES_MAX};
use headstart_types::Nanos;

use crate::choose::{choose, Chosen};
use crate::drive::{self, Electronics};
use crate::error::{file_name, one_line, ImportError};
use crate::files::Files;
use crate::layout::Layout;
use crate::params::{leftover, shown, time, Notes, Params};
use crate::parser::{parse, Block, Document};
use crate::seek::{curve, nominal, Curve};

/// Seek parameters of seek types other than the one in use.
const OTHER_SEEKS: [&str; 8] = [
    "Single cylinder seek time",
    "Average seek time",
    "Full strobe seek time",
    "Full seek curve",
    "Constant seek time",
    "HPL seek equation values",
    "First ten seek times",
    "Constant access time",
];

/// A drive read from DiskSim's files.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The name of its block.
    pub name: String,
    /// The profile, as TOML with comments: the file of each group of numbers, and what was not used.
    pub profile: String,
    /// Parameters that change times and are not modelled, and unusual values; one line each, with file and line.
    pub warnings: Vec<String>,
    /// The parameter files that were read, the given one first.
    pub files: Vec<PathBuf>,
    /// Sectors of 512 bytes that the zones hold.
    pub sectors: u64,
}

/// The whole import.
pub(crate) fn import(files: &dyn Files, path: &Path, disk: Option<&str>) -> Result<Imported, ImportError> {
    let document = parse(files, path)?;
    let mut notes = Notes::default();
    for (name, at) in &document.passed_over {
        notes.warn(at, &format!("{name} is defined a second time: passed over, as DiskSim does"));
    }
    let first = document.files[0].to_path_buf();
    match choose(&document, disk)? {
        Chosen::Model(block) => {
            let params = &mut Params::try_new(&document, block)?;
            let electronics = drive::none(&mut notes, params);
            assemble(&document, block.name.as_deref(), params, electronics, (files, &first), notes)
        }
        Chosen::Disk(block, above) => {
            let params = &mut Params::try_new(&document, block)?;
            let model = params.block("Model")?.ok_or_else(|| params.missing("Model"))?;
            let electronics = drive::electronics(&document, params, &above, &mut notes)?;
            let model = &mut Params::try_new(&document, model)?;
            assemble(&document, block.name.as_deref(), model, electronics, (files, &first), notes)
        }
    }
}

/// The mechanics of a drive.
struct Mechanics {
    rpm: i64,
    head_switch: f64,
    write_settle: f64,
    from: String,
}

/// Combines model and electronics.
fn assemble(
    document: &Document,
    name: Option<&str>,
    model: &mut Params,
    electronics: Electronics,
    files: (&dyn Files, &Path),
    mut notes: Notes,
) -> Result<Imported, ImportError> {
    if model.base() != "dm_disk" {
        return Err(ImportError::at(model.at(), format!("a model of type {}", model.base()), "dm_disk"));
    }
    let surfaces = model.need_whole("Number of data surfaces", 1, SURFACES_MAX.into())?;
    let cylinders = model.whole("Number of cylinders", 1, CYLINDERS_MAX.into())?;
    let block_count = model.whole("Block count", 0, i64::MAX)?;
    let mechanics_block = model.block("Mechanical Model")?.ok_or_else(|| model.missing("Mechanical Model"))?;
    let layout_block = model.block("Layout Model")?.ok_or_else(|| model.missing("Layout Model"))?;
    leftover(model, &mut notes);

    let mut mechanics_params = Params::try_new(document, mechanics_block)?;
    let mechanics = mechanics(&mut mechanics_params, &mut notes)?;
    let mut layout_params = Params::try_new(document, layout_block)?;
    let layout = Layout::try_new(document, &mut layout_params, (surfaces, mechanics.rpm), &mut notes)?;
    leftover(&layout_params, &mut notes);
    let all = layout.cylinders();
    if cylinders.is_some_and(|cylinders| cylinders != all) {
        let count = cylinders.unwrap_or(0);
        notes.warn(model.at(), &format!("Number of cylinders = {count}, the zones reach to {all}: the zones count"));
    }
    let curve = curve(&mut mechanics_params, all as u64, files, &mut notes)?;
    for name in OTHER_SEEKS {
        if let Some(value) = mechanics_params.get_if_unused(name) {
            notes.unused(&format!("{name} = {}, of no use for this seek type", shown(value)));
        }
    }
    leftover(&mechanics_params, &mut notes);

    let sectors = layout.sectors(surfaces);
    if let Some(count) = block_count.filter(|count| *count != sectors) {
        let text = format!("Block count = {count}: the zones hold {sectors} sectors, and they count, as in DiskSim");
        match count > sectors {
            true => notes.warn(model.at(), &text),
            false => notes.unused(&text),
        }
    }
    let name = name.map(shown_name).filter(|name| !name.trim().is_empty()).unwrap_or_else(|| "unnamed".to_owned());
    let nominal = nominal(&curve, all as u64, mechanics.rpm, electronics.read_miss_millis);
    let mut out = head(document, &name, &notes);
    _ = writeln!(out, "name = {}", toml::Value::String(name.clone()));
    _ = writeln!(out, "nominal_service = \"{nominal}\"  # a third of the stroke, half a turn, a read's overhead");
    _ = writeln!(out, "surfaces = {surfaces}  # {}:{}", model.at().file_name(), model.at().line);
    mechanics.write(&mut out);
    _ = writeln!(out, "# Layout: {}:{}; {sectors} sectors", layout_block.at.file_name(), layout_block.at.line);
    layout.write_scheme(&mut out);
    write_seek(&curve, mechanics_block, &mut out);
    out.push_str(&electronics.text);
    layout.write_zones(&mut out);
    let files = document.files.iter().map(|file| file.to_path_buf()).collect();
    let warnings = notes.warnings.iter().map(|(at, text)| format!("{at}: {text}")).collect();
    Ok(Imported { name, profile: out, warnings, files, sectors: sectors as u64 })
}

fn mechanics(params: &mut Params, notes: &mut Notes) -> Result<Mechanics, ImportError> {
    const ACCESS: &str = "Access time type";
    const ROTATING: &str = "trackSwitchPlusRotation";
    if params.base() != "dm_mech_g1" {
        let problem = format!("the mechanical model {} is not supported", params.base());
        return Err(ImportError::at(params.at(), problem, "dm_mech_g1"));
    }
    match params.word(ACCESS, ROTATING)? {
        Some((ROTATING, _)) | None => {}
        Some((other, at)) => return Err(ImportError::at(at, format!("{ACCESS} = {other}"), ROTATING)),
    }
    crate::choose::not_zero(params, &["Percent error in rpms"], notes)?;
    let write_settle = params.real("Add. write settling delay", -1_000.0, 3_600_000.0)?.unwrap_or(0.0);
    Ok(Mechanics {
        rpm: params.need_whole("Rotation speed (in rpms)", 1, RPM_MAX.into())?,
        head_switch: params.need_millis("Head switch time")?,
        write_settle,
        from: format!("{}:{}", params.at().file_name(), params.at().line),
    })
}

impl Mechanics {
    fn write(&self, out: &mut String) {
        _ = writeln!(out, "# Mechanics: {}", self.from);
        _ = writeln!(out, "rpm = {}\nhead_switch = {}", self.rpm, time(self.head_switch));
        // Negative if a write's seek was measured to be shorter than a read's.
        let sign = if self.write_settle < 0.0 { "-" } else { "" };
        _ = writeln!(out, "write_settle = \"{sign}{}\"", Nanos::from_millis_f64(self.write_settle.abs()));
    }
}

fn write_seek(curve: &Curve, block: &Block, out: &mut String) {
    let from = match curve {
        Curve::Table(_, file) => file.clone(),
        _ => format!("{}:{}", block.at.file_name(), block.at.line),
    };
    _ = writeln!(out, "\n[seek]  # {from}");
    curve.write(out);
}

/// A name for a profile: on one line, shortened.
fn shown_name(name: &str) -> String {
    one_line(name).chars().take(NAME_CHARACTERS_MAX).collect()
}

fn head(document: &Document, name: &str, notes: &Notes) -> String {
    let mut out = format!("# {}: imported from DiskSim's parameter files\n", name);
    for file in &document.files {
        _ = writeln!(out, "#   {}", file_name(file));
    }
    let beware: Vec<String> =
        notes.warnings.iter().map(|(at, text)| format!("{}:{}: {text}", at.file_name(), at.line)).collect();
    for (title, list) in [("Beware:", &beware), ("Not used:", &notes.unused)] {
        if !list.is_empty() {
            _ = writeln!(out, "# {title}");
        }
        for note in list {
            _ = writeln!(out, "#   {note}");
        }
    }
    out.push('\n');
    out
}
