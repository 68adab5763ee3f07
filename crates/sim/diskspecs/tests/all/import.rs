//! Import of a toy drive written by hand: every parameter of the profile compared with the source, read by eye.

use headstart_device::{Device, Mechanical};
use headstart_diskspecs::{import, import_disk, Imported};
use toml::{Table, Value};

use crate::toy_files::{changed, toy, Folder};

/// The profile, which must build a drive with the capacity that the import reports.
fn table(imported: &Imported) -> Table {
    let table: Table = imported.profile.parse().unwrap_or_else(|error| panic!("{error}\n{}", imported.profile));
    let drive = Mechanical::from_table(table.clone()).unwrap_or_else(|error| panic!("{error}\n{}", imported.profile));
    assert_eq!(drive.capacity_sectors(), Some(imported.sectors));
    table
}

fn parsed(text: &str) -> Table {
    text.parse().unwrap()
}

#[test]
fn the_whole_toy_drive() {
    let imported = import(&toy("toy.parv")).unwrap();
    assert_eq!(imported.name, "TOY");
    let [warning] = &imported.warnings[..] else { panic!("{:?}", imported.warnings) };
    assert!(warning.ends_with("toy.model:10: 1 slips or defects passed over: twice, or beyond the zone"), "{warning}");
    let files: Vec<_> = imported.files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(files, ["toy.parv", "toy.diskspecs", "toy.model"]);
    // Zone 1: 10 cylinders * 2 * 20 - 7 - 6 spares in each of the two whole ranges of 4 = 381.
    // Zone 2: 8 * 2 * 17 - 2 * 6 = 260. The block count of 636 is 5 less.
    assert_eq!(imported.sectors, 641);
    // Distance 20 / 3 = 6: 1.25 + 2/15 * 3.5 = 1.717; half a revolution of 10 ms: 5; 2 * 0.3: 7.317 ms.
    let profile = parsed(
        r#"
        name = "TOY"
        nominal_service = "7.3ms"
        surfaces = 2
        rpm = 6000
        head_switch = "900us"
        write_settle = "400us"
        mapping = "serpentine"
        sparing = "range"
        sparing_range = 4
        [seek]
        form = "table"
        distances = [1, 2, 4, 19]
        times_ms = [1.0, 1.5, 1.25, 4.75]
        [controller]                       # times 2
        read_hit_after_read = "200us"
        read_hit_after_write = "400us"
        read_miss_after_read = "600us"
        read_miss_after_write = "800us"
        write_hit_after_read = "1ms"
        write_hit_after_write = "1.2ms"
        write_miss_after_read = "1.4ms"
        write_miss_after_write = "1.6ms"
        per_request = "20us"
        read_completion = "22us"
        write_completion = "24us"
        data_preparation = "26us"
        first_reselect = "28us"
        other_reselect = "30us"
        read_disconnect_after_read = "32us"
        read_disconnect_after_write = "34us"
        write_disconnect = "36us"
        minimum_seek = "38us"
        [controller.extra_write_disconnect]
        command = "42us"
        disconnect = "44us"
        pause = "46us"
        second_disconnect = "48us"
        seek_delta = "50us"
        [bus]
        sector_time = "50us"               # the bus is slower than the disk's own 40
        [buffer]
        segments = 4
        segment_sectors = 64
        write_segments = 2
        read_ahead = "next-track"
        read_ahead_minimum = 2
        read_ahead_maximum = 60
        drop_requested = true
        write_reporting = "buffer"
        read_ahead_on_hit = true
        read_before = true
        zero_latency_read = true
        zero_latency_write = true
        combine_writes = false
        hit_on_written = false
        hit_under_way = true
        partial_hit = false
        stop_within_sector = true
        read_watermark = 0.5
        watermark_of = "request"
        [[zones]]
        first_cylinder = 0
        cylinders = 10
        sectors_per_track = 20
        track_skew = 3
        cylinder_skew = 5
        reserved = 7
        spares = 6
        slips = [17, 300]
        defects = [[30, 398]]
        [[zones]]
        first_cylinder = 12
        cylinders = 8
        sectors_per_track = 17
        track_skew = 4                     # 0.25 * 17 = 4.25
        cylinder_skew = 16                 # 0.97 * 17 = 16.49
        offset = 9                         # 0.5 * 17 = 8.5, rounded up
        spares = 6
        "#,
    );
    let ours = table(&imported);
    for (key, value) in &profile {
        assert_eq!(ours.get(key), Some(value), "{key}");
    }
    assert_eq!(ours, profile);
}

#[test]
fn comments_say_where_from_and_what_was_left_out() {
    let profile = import(&toy("toy.parv")).unwrap().profile;
    for line in ["#   toy.parv", "#   Max queue length = 4", "[controller]  # toy.diskspecs:1", "[seek]  # toy.seek"] {
        assert!(profile.lines().any(|other| other == line), "{line} in\n{profile}");
    }
    assert!(profile.contains("# slower than the disk's own 0.04 ms: toy.parv:10"), "{profile}");
    assert!(profile.contains("Block count = 636: the zones hold 641"), "{profile}");
}

#[test]
fn a_part_of_the_files_is_enough() {
    let whole = table(&import(&toy("toy.parv")).unwrap());
    let disk = import(&toy("toy.diskspecs")).unwrap();
    let mut expected = whole.clone();
    expected["bus"]["sector_time"] = Value::from("40us");
    assert_eq!(table(&disk), expected);

    let model = import(&toy("toy.model")).unwrap();
    assert!(model.warnings[0].contains("a model without its disk"), "{:?}", model.warnings);
    let table = table(&model);
    assert_eq!(table["name"].as_str(), Some("TOY_model"));
    assert_eq!(table["zones"], whole["zones"]);
    assert_eq!(table["seek"], whole["seek"]);
    assert_eq!(table["controller"]["overhead"].as_str(), Some("0s"));
}

/// The toy model with another seek type: the `[seek]` table and the nominal service time.
fn seek(test: &str, with: &str) -> (Table, String, Vec<String>) {
    let changes = [("Seek type = extracted,\n    Full seek curve = toy.seek", with)];
    let folder = Folder::new(test, &[("m.model", &changed("toy.model", &changes))]);
    let imported = import(&folder.path("m.model")).unwrap();
    let table = table(&imported);
    let nominal = table["nominal_service"].as_str().unwrap().to_owned();
    (table["seek"].as_table().unwrap().clone(), nominal, imported.warnings)
}

#[test]
fn every_seek_type() {
    let points = "Single cylinder seek time = 1.0, Average seek time = 3, Full strobe seek time = 5.5";
    let same = "minimum = '1ms'\naverage = '3ms'\nmaximum = '5.5ms'";
    // Root: -10 + 45 - 27.5 > 0; linear: 7 - 45 + 44 > 0.
    let (table, nominal, _) = seek("curve", &format!("Seek type = curve, {points}"));
    assert_eq!(table, parsed(&format!("form = 'min-average-max'\n{same}")));
    assert_eq!(nominal, "8ms"); // 3 + 5
    let (table, ..) = seek("linear", &format!("Seek type = linear, {points}"));
    assert_eq!(table, parsed(&format!("form = 'line'\n{same}")));
    // Linear: 7 - 45 + 8 * 4 < 0: the curve would decrease towards the end.
    let (table, _, warnings) = seek("bent", &format!("Seek type = curve, {}", points.replace("5.5", "4.0")));
    assert_eq!(table["form"].as_str(), Some("line"));
    assert!(warnings.iter().any(|warning| warning.contains("no curve of Lee's")), "{warnings:?}");

    let (table, nominal, _) = seek("constant", "Seek type = constant, Constant seek time = 2.25");
    assert_eq!((table, nominal.as_str()), (parsed("form = 'constant'\ntime = '2.25ms'"), "7.3ms")); // 2.25 + 5

    // The root applies to distances below V1; V6 is a single cylinder's time, -1 for none.
    let values = "[ 6, 1.0, 0.5, 2.0, 0.25, -1.0 ]";
    let (table, nominal, _) = seek("hpl", &format!("Seek type = hpl, HPL seek equation values = {values}"));
    let curve = "form = 'root-linear'\nboundary = 5\nroot = ['1ms', '500us']\nlinear = ['2ms', '250us']";
    assert_eq!(table, parsed(curve));
    assert_eq!(nominal, "8.5ms"); // 2 + 0.25 * 6 + 5
    let (table, ..) =
        seek("hpl-single", &format!("Seek type = hpl, HPL seek equation values = {}", values.replace("-1.0", "0.75")));
    assert_eq!(table, parsed(&format!("{curve}\nfirst_ms = [0.75]")));
    let ten = "0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1";
    let both = format!("HPL seek equation values = {values}, First ten seek times = [ {ten} ]");
    let (table, nominal, _) = seek("hplplus10", &format!("Seek type = hplplus10, {both}"));
    assert_eq!(table, parsed(&format!("{curve}\nfirst_ms = [{}.0]", ten)));
    assert_eq!(nominal, "5.6ms"); // the sixth of the ten + 5
}

#[test]
fn mapping_and_sparing_schemes() {
    let mappings = ["forward", "serpentine", "serpentine-cylinder"];
    for (scheme, name) in mappings.iter().enumerate() {
        let text = changed("toy.model", &[("mapping scheme = 1", &format!("mapping scheme = {scheme}"))]);
        let folder = Folder::new(name, &[("m.model", &text), ("toy.seek", "1, 1.0\n19, 2.0\n")]);
        assert_eq!(table(&import(&folder.path("m.model")).unwrap())["mapping"].as_str(), Some(*name));
    }
    // Sectors in zone 1 of 10 cylinders, 20 tracks, 400 sectors, 7 of them reserved, 2 slips, and in zone 2 of 8
    // cylinders, 16 tracks, 272 sectors; 6 spares of each unit.
    let schemes = [
        ("none", 393 + 272),
        ("tracks", 393 - 6 * 20 + 272 - 6 * 17),
        ("cylinder", 393 - 60 + 272 - 48),
        ("track", 393 - 120 + 272 - 96),
        ("cylinder-slip-to-end", 393 - 60 - 2 + 272 - 48),
        ("cylinder-front", 393 - 60 + 272 - 48),
        ("cylinder-front-slip-to-end", 393 - 60 - 2 + 272 - 48),
        ("end", 393 - 2 + 272),
        ("range", 641),
        ("zone", 393 - 6 + 272 - 6),
        ("zone-slip-to-end", 393 - 6 - 2 + 272 - 6),
    ];
    for (scheme, (name, sectors)) in schemes.into_iter().enumerate() {
        // With spare tracks, slips and defects count tracks; the zone has 20.
        let bad = if name == "tracks" { ("[ 300, 17, 17 ]", "[ 18, 17 ]") } else { ("[ 300", "[ 300") };
        let used = &*format!("scheme used = {scheme}");
        let text = changed("toy.model", &[("scheme used = 8", used), bad, ("[ 30, 398, 5, 5 ]", "[]")]);
        let folder = Folder::new(&format!("sparing-{name}"), &[("m.model", &text), ("toy.seek", "1 1\n19 2\n")]);
        let imported = import(&folder.path("m.model")).unwrap();
        assert_eq!((table(&imported)["sparing"].as_str(), imported.sectors), (Some(name), sectors));
        assert_eq!(table(&imported).contains_key("sparing_range"), name == "range");
    }
}

#[test]
fn what_changes_times_and_is_not_modelled_is_said() {
    let disk = changed(
        "toy.diskspecs",
        &[("Preseeking level = 0", "Preseeking level = 1"), ("stop prefetch = 1", "stop prefetch = 0")],
    );
    let parv = changed(
        "toy.parv",
        &[
            ("Scale for delays = 0.0", "Scale for delays = 1.5"),
            ("type = 1, Arbitration time = 0.0, Read block transfer time = 0.0", "Read block transfer time = 0.1"),
            ("Read initiation delay = 0.0", "Read initiation delay = 0.3"),
            ("Constant access time = 0.0", "Constant access time = 1"),
        ],
    );
    let model = changed("toy.model", &[("rpms = 0.0", "rpms = 0.5")]);
    let model = model.replace("Head switch time", "Colour = blue, Head switch time");
    let seek = changed("toy.seek", &[("2,\t1.5, 0.02\n", "2 cylinders\n")]);
    let files = [("toy.parv", &*parv), ("toy.diskspecs", &*disk), ("toy.model", &*model), ("toy.seek", &*seek)];
    let folder = Folder::new("warnings", &files);
    let imported = import(&folder.path("toy.parv")).unwrap();
    for (place, words) in [
        ("toy.diskspecs:8", "Preseeking level = 1 changes times"),
        ("toy.diskspecs:1", "Write hit stop prefetch = 0 changes times"),
        ("toy.parv:16", "Scale for delays = 1.5"),
        ("toy.parv:9", "an outer bus takes time"),
        ("toy.parv:7", "Read initiation delay = 0.3"),
        ("toy.parv:6", "Constant access time = 1"),
        ("toy.model:44", "Percent error in rpms = 0.5"),
        ("toy.model:42", "Colour = blue is not known"),
        ("toy.seek:3", "passed over, not \"distance, ms\": 2 cylinders"),
    ] {
        let found = imported.warnings.iter().any(|warning| warning.contains(place) && warning.contains(words));
        assert!(found, "{place}: {words} in {:#?}", imported.warnings);
        assert!(imported.profile.contains(words), "{words} in the comment");
    }
    assert_eq!(table(&imported)["seek"]["distances"].as_array().unwrap().len(), 3);
}

#[test]
fn several_disks_and_inherited_parameters() {
    let system = "source toy.diskspecs
        TOY FAST { Per-request overhead time = 0.0, Read hit over. after read = 0.05 }
        TOY TOY { Per-request overhead time = 9.0 }
        instantiate [ slow ] as TOY
        instantiate [ fast0 .. fast2, other ] as FAST";
    let files = ["toy.diskspecs", "toy.model", "toy.seek"].map(|name| (name, changed(name, &[])));
    let mut files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    files.push(("two.parv", system));
    let folder = Folder::new("several", &files);
    let path = folder.path("two.parv");
    let error = import(&path).unwrap_err().to_string();
    assert_eq!(error, format!("{}: holds 2 disks; allowed: the name of one: TOY, FAST", path.display()));
    let error = import_disk(&path, "fast3").unwrap_err().to_string();
    assert_eq!(error, format!("{}: holds no one disk \"fast3\"; allowed: TOY, FAST", path.display()));
    for name in ["FAST", "fast1", "other"] {
        let fast = table(&import_disk(&path, name).unwrap());
        assert_eq!(fast["controller"]["read_hit_after_read"].as_str(), Some("100us"), "2 * its own 0.05");
        assert_eq!(fast["controller"]["read_hit_after_write"].as_str(), Some("400us"), "2 * the inherited 0.2");
        assert!(!fast["controller"].as_table().unwrap().contains_key("per_request"));
    }
    let slow = import_disk(&path, "slow").unwrap();
    assert!(slow.warnings[0].contains("two.parv:3: TOY is defined a second time"), "{:?}", slow.warnings);
    assert_eq!(table(&slow)["controller"]["per_request"].as_str(), Some("20us"));
}

#[test]
fn odd_but_known_settings() {
    let parv = changed("toy.parv", &[("Write block transfer time = 0.05", "Write block transfer time = 0.06")]);
    let disk = [
        ("water mark = 0.5", "water mark = 0.25"),
        ("reqsize = 1", "reqsize = 0"),
        ("separate write segment = 0", "separate write segment = 1"),
    ];
    let disk = changed("toy.diskspecs", &disk);
    let model = changed("toy.model", &[("delay = 0.4", "delay = -0.483")]);
    let files = [("toy.parv", &*parv), ("toy.diskspecs", &*disk), ("toy.model", &*model), ("toy.seek", "1 1\n2 2\n")];
    let folder = Folder::new("odd", &files);
    let imported = import(&folder.path("toy.parv")).unwrap();
    let table = table(&imported);
    assert_eq!(table["bus"], Value::Table(parsed("sector_time = '50us'\nwrite_sector_time = '60us'")));
    assert_eq!(table["buffer"]["read_watermark"].as_float(), Some(0.25));
    assert_eq!(table["buffer"]["watermark_of"].as_str(), Some("segment"));
    assert_eq!(table["buffer"]["write_segments"].as_integer(), Some(1));
    assert_eq!(table["buffer"]["write_segment_apart"].as_bool(), Some(true));
    assert_eq!(table["write_settle"].as_str(), Some("-483us"));
    assert_eq!(imported.warnings.len(), 1, "the slip given twice, as ever: {:?}", imported.warnings);
}

/// Sourced files are next to the file that names them, or next to the first.
#[test]
fn source_is_followed_through_folders() {
    let [disk, model, seek] = ["toy.diskspecs", "toy.model", "toy.seek"].map(|name| changed(name, &[]));
    let model = model.replace("toy.seek", "curves/toy.seek");
    let folder = Folder::new(
        "folders",
        &[
            ("toy.parv", "source ./drives/toy.diskspecs\r\ninstantiate [d] as TOY\r\n"),
            ("drives/toy.diskspecs", &disk),
            ("drives/toy.model", &model),
            ("curves/toy.seek", &seek),
        ],
    );
    let imported = import(&folder.path("toy.parv")).unwrap();
    assert_eq!(table(&imported)["seek"]["distances"].as_array().unwrap().len(), 4);
    assert_eq!(imported.files[1], folder.path("drives/toy.diskspecs"));
}

/// A profile is text that the device crate reads, whatever the drive's name.
#[test]
fn a_name_that_no_profile_may_have_is_shown_on_one_line() {
    let [model, seek] = ["toy.model", "toy.seek"].map(|name| changed(name, &[]));
    for (given, shown) in [("T\u{1d}Y".to_owned(), "T Y".to_owned()), ("T".repeat(500), "T".repeat(200))] {
        let disk = changed("toy.diskspecs", &[("disksim_disk TOY", &format!("disksim_disk {given}"))]);
        let folder = Folder::new("names", &[("d", &disk), ("toy.model", &model), ("toy.seek", &seek)]);
        let imported = import(&folder.path("d")).unwrap();
        assert_eq!(imported.name, shown);
        headstart_device::Mechanical::from_table(table(&imported)).unwrap();
    }
}
