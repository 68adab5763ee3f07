//! Errors in DiskSim's files: one line, with file and line, what is wrong and what is allowed; hostile files are
//! refused before they cost anything.

use headstart_diskspecs::{import, ImportError};

use crate::toy_files::{changed, Folder};

/// The error for a file `t` with this text, without the folder in front.
fn error_of(name: &str, files: &[(&str, &str)]) -> String {
    let folder = Folder::new(name, files);
    let error = import(&folder.path(files[0].0)).expect_err(files[0].1).to_string();
    assert!(!error.contains('\n'), "{error:?}");
    error.replace(&format!("{}/", folder.0.display()), "")
}

#[test]
fn mistakes_of_form() {
    for (text, error) in [
        ("", "t: holds no disk; allowed: a file with a block disksim_disk"),
        ("dm_disk A { b = 1 }\n\n}", "t:3: unexpected \"}\"; allowed: TYPE NAME { ... }, instantiate"),
        ("a b c", "t:1: \"a\" begins nothing known; allowed: TYPE NAME { ... }"),
        ("dm_disk A {\n b = 1\n c = 2 }", "t:3: \"c\" after the value \"1\"; allowed: \",\" or the end of the block"),
        ("dm_disk A { b = [1 }", "t:1: unexpected \"}\"; allowed: \",\" or \"]\""),
        ("dm_disk A { b = { } }", "t:1: \"{\" in place of a value; allowed: a number, a word, a list"),
        ("dm_disk A { b = }", "t:1: \"}\" in place of a value; allowed: a number"),
        ("dm_disk A { b }", "t:1: unexpected \"}\"; allowed: \"=\" here"),
        ("dm_disk A { = 1 }", "t:1: unexpected \"=\"; allowed: the name of a parameter"),
        ("dm_disk A { b = 1", "t:1: unexpected the end of the file; allowed: \",\" or \"}\""),
        ("dm_disk A { b c = 1,\n b  c = 2 }", "t:2: \"b c\" is given twice; allowed: each parameter once"),
        ("dm_disk A { b = 99999999999999999999 }", "t:1: 99999999999999999999 is too large; allowed: a whole number"),
        ("dm_disk A { b = 1e999 }", "t:1: 1e999 is too large; allowed: a number of double precision"),
        ("dm_disk A { b = 1; }", "t:1: unexpected \";\"; allowed: \",\" or \"}\""),
        ("instantiate a as B", "t:1: unexpected \"a\"; allowed: \"[\" here"),
        ("instantiate [a] B", "t:1: \"B\" after the list; allowed: as TYPE"),
        ("instantiate [a2 .. a1] as B", "t:1: a2 .. a1 is no range; allowed: such as disk0 .. disk7"),
        ("topology a b c", "t:1: unexpected \"c\"; allowed: \"[\" here"),
        ("source\n", "t:1: the end of the file after source; allowed: the name of a file"),
        ("# so far\nsource missing.model", "t:2: cannot read missing.model: No such file"),
        ("\nsource t", "t:2: t sources itself; allowed: a file that is not being read already"),
        ("source ./x/../t", "t:1: cannot read x/../t"),
        ("source .", "t:1: cannot read "),
    ] {
        let found = error_of("form", &[("t", text)]);
        assert!(found.starts_with(error), "{text:?}\n{found}\nshould begin with\n{error}");
    }
    let found = error_of("cycle", &[("t", "source a"), ("a", "\n\nsource b"), ("b", "source t")]);
    assert_eq!(found, "b:1: t sources itself; allowed: a file that is not being read already");
    let error = import("no/such.parv".as_ref()).unwrap_err();
    assert!(matches!(error, ImportError::Read { .. }));
    assert!(error.to_string().starts_with("no/such.parv: No such file or directory; allowed: a .parv"), "{error}");
}

#[test]
fn values_that_no_drive_has() {
    let seek = changed("toy.seek", &[]);
    for (from, to, error) in [
        ("surfaces = 2", "surfaces = 0", "2: Number of data surfaces = 0; allowed: a whole number from 1 to 1000"),
        ("surfaces = 2", "surfaces = two", "2: Number of data surfaces = two; allowed: a whole number"),
        ("  Number of data surfaces = 2,\n", "", "1: dm_disk lacks \"Number of data surfaces\""),
        (
            "dm_layout_g1 {",
            "dm_layout_g4 {",
            "5: the layout model dm_layout_g4 is not supported; allowed: dm_layout_g1",
        ),
        ("dm_mech_g1 {", "dm_mech_g2 {", "37: the mechanical model dm_mech_g2 is not supported"),
        ("scheme = 1", "scheme = 3", "6: LBN-to-PBN mapping scheme = 3; allowed: a whole number from 0 to 2"),
        ("used = 8", "used = 11", "7: Sparing scheme used = 11; allowed: a whole number from 0 to 10"),
        ("sparing = 4", "sparing = 0", "8: Rangesize for sparing = 0"),
        ("number = 12", "number = 9", "22: the zone from cylinder 9 starts within or before the one before"),
        ("number = 9", "number = -1", "12: Last cylinder number = -1; allowed: a whole number from 0 to"),
        ("track = 20", "track = 0", "13: Blocks per track = 0; allowed: a whole number from 1 to"),
        ("front = 7", "front = 399", "10: the zone holds no sector; allowed: fewer spares and reserved sectors"),
        ("[ 300", "[ 3.5", "19: slips = 3.5; allowed: whole numbers from 0"),
        ("[ 30,", "[ 7, 30,", "20: an odd number of defects; allowed: pairs"),
        ("revolutions", "degrees", "26: Skew units = degrees; allowed: sectors, revolutions"),
        ("trackSwitchPlusRotation", "averageRotation", "38: Access time type = averageRotation; allowed: track"),
        ("= extracted", "= spline", "39: unknown Seek type spline; allowed: extracted, hpl, hplplus10, curve, linear"),
        ("Full seek curve", "Seek curve", "37: dm_mech_g1 lacks \"Full seek curve\""),
        ("toy.seek", "[ toy.seek ]", "40: Full seek curve = [1 values]; allowed: the name of a file"),
        ("toy.seek", "no.seek", "40: cannot read no.seek: No such file"),
        ("= 6000", "= 1e9", "43: Rotation speed (in rpms) = 1000000000; allowed: a whole number from 1 to 1000000"),
        ("time = 0.9", "time = -0.9", "42: Head switch time = -0.9; allowed: a number from 0 to 3600000"),
        ("= extracted", "= curve", "37: dm_mech_g1 lacks \"Single cylinder seek time\""),
        ("= extracted", "= hpl", "37: dm_mech_g1 lacks \"HPL seek equation values\""),
        (
            "= extracted",
            "= hpl, HPL seek equation values = [ 1, 2.0 ]",
            "39: HPL seek equation values = [2 values]; allowed: a list of 6 numbers",
        ),
        (
            "= extracted",
            "= hpl, HPL seek equation values = [ 1, -2.0, 1, 1, 1, -1 ]",
            "39: HPL seek equation values = -2; allowed: numbers, not below zero",
        ),
    ] {
        // Lines count from the model's own file.
        let model = changed("toy.model", &[(from, to)]);
        let found = error_of("values", &[("t.model", &model), ("toy.seek", &seek)]);
        let error = format!("t.model:{error}");
        assert!(found.starts_with(&error), "{found}\nshould begin with\n{error}");
    }
    for (seek, error) in [
        ("1, 1.0\n", "toy.seek: 1 seek distances; allowed: lines \"distance, ms\", at least two"),
        ("2, 1.0\n1, 2.0\n", "toy.seek:2: distance 1 out of order; allowed: rising distances"),
        ("1, 1.0\n2, -1.0\n", "toy.seek:2: a seek of -1 ms; allowed: 0 to 3600000 ms"),
        ("1, 1.0\n2, nan\n", "toy.seek:2: a seek of NaN ms"),
        ("1, 1.0\n194294967296, 2.0\n", "toy.seek:2: a distance of 194294967296; allowed: a number of cylinders up to"),
    ] {
        let found = error_of("seek-file", &[("t.model", &changed("toy.model", &[])), ("toy.seek", seek)]);
        assert!(found.starts_with(error), "{found}");
    }
    let disk = changed("toy.diskspecs", &[("source toy.model", "dm_mech_g1 { }")]);
    assert_eq!(error_of("kind", &[("t", &disk)]), "t:2: a model of type dm_mech_g1; allowed: dm_disk");
    let disk = changed("toy.diskspecs", &[("  Model = source toy.model,\n", "")]);
    assert!(error_of("no-model", &[("t", &disk)]).starts_with("t:1: disksim_disk lacks \"Model\""));
}

#[test]
fn hostile_files_end_soon() {
    let deep = format!("dm_disk A {{ b = {}", "[".repeat(1_000_000));
    assert!(error_of("lists", &[("t", &deep)]).starts_with("t:1: blocks and lists lie within each other too deeply"));
    let deep = format!("dm_disk A {{ b = {}", "c { d = ".repeat(100_000));
    assert!(error_of("blocks", &[("t", &deep)]).starts_with("t:1: blocks and lists lie"));
    let deep = format!("topology {}", "a b [".repeat(100_000));
    assert!(error_of("topology", &[("t", &deep)]).starts_with("t:1: blocks and lists lie"));

    // Each file sources the next twice: 2 to the power of 40 files, if there were no limits.
    let doubling: Vec<(String, String)> =
        (0..40).map(|index| (format!("f{index}"), format!("source f{0} source f{0}", index + 1))).collect();
    let doubling: Vec<(&str, &str)> = doubling.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert!(error_of("depth", &doubling).contains("files source each other too deeply; allowed: 32 deep"));
    let mut shallow = doubling[..20].to_vec();
    shallow.push(("f20", ""));
    assert!(error_of("count", &shallow).contains("too many files are sourced; allowed: 1000 files of together 64 MiB"));

    // Ranges are not expanded, chains of blocks not copied.
    let range = "instantiate [ d0 .. d4294967295 ] as A dm_disk A { }";
    assert!(error_of("range", &[("t", range)]).starts_with("t:1: dm_disk lacks"));
    let chain: String = (1..5_000).map(|index| format!("D{} D{index} {{ }}\n", index - 1)).collect();
    let chain = format!("dm_disk D0 {{ a = 1 }}\n{chain}");
    assert!(error_of("chain", &[("t", &chain)]).contains("inherits over too many blocks"));
    let circle = error_of("circle", &[("t", "A A { } B A { } A B { } dm_disk C { }")]);
    assert!(circle.starts_with("t:1: dm_disk lacks"), "{circle}");

    let folder = Folder::new("large", &[("t", "")]);
    let file = std::fs::File::create(folder.path("t")).unwrap();
    file.set_len(17 << 20).unwrap();
    assert!(import(&folder.path("t")).unwrap_err().to_string().contains("larger than 16 MiB"));
    assert!(import(&folder.0).unwrap_err().to_string().contains("not a regular file"));
}
