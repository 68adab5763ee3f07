//! A bus that is slower than the media, and what a write waits for, every number worked out by hand.
//!
//! The drive of `segments.rs`: a revolution is 10 ms, 100 sectors per track pass in 0.1 ms each, skew 10: sector 99 has
//! passed at 10.0 ms and sector 100 begins at 11.0. Overheads in ms after a read: hit 0.1, miss 0.3, write-through 0.4;
//! after a write twice that.

use headstart_types::Nanos;

use crate::small_drive::{ms, read, small as drive, write};

const SEGMENTED: &str = "segments = 2\nsegment_sectors = 50\nread_ahead = 'segment'\nwrite_reporting = 'media'\n";
const SINGLE: &str = "size = '50KiB'\nread_ahead = true\n";

#[test]
fn the_bus_idles_while_the_head_changes_tracks() {
    for buffer in [SEGMENTED, SINGLE] {
        // 96 is in at 9.7, so that 8 sectors could have crossed at 10.9; 103 is in at 11.4 and could at 11.55. But 100
        // is in at 11.1, and it and the three behind it take until 11.7.
        let mut device = drive(0.15, "", buffer);
        assert_eq!(read(&mut device, 0.0, 96, 8).end, ms(11.7));
        // A bus faster than the media waits for the last sector only: 11.4 + 0.02.
        assert_eq!(read(&mut drive(0.02, "", buffer), 0.0, 96, 8).end, ms(11.42));
        // On one track the first sector sets the pace: 1.1 + 8 * 0.15.
        assert_eq!(read(&mut drive(0.15, "", buffer), 0.0, 10, 8).end, ms(2.3));
    }
}

#[test]
fn the_bus_idles_in_a_read_of_several_tracks() {
    // Three tracks: 99 at 10.0, 100..200 from 11.0 to 21.0, 200 is in at 22.1. At 0.105 ms a sector a whole track takes
    // 10.5, less than the 11 ms from one track to the next: 200 is the last that the bus waits for, 22.1 + 2 * 0.105.
    assert_eq!(read(&mut drive(0.105, "", SEGMENTED), 0.0, 99, 103).end, ms(22.31));
    // At 0.15 it takes longer: the bus never catches up again. 99 is in at 10.0 and 100 at 11.1: 11.1 + 102 * 0.15.
    assert_eq!(read(&mut drive(0.15, "", SEGMENTED), 0.0, 99, 103).end, ms(26.4));
}

#[test]
fn the_bus_idles_behind_a_hit() {
    // 90..94 by 9.1 + 4 * 0.15 = 9.7, when 94, 95 and 96 are in.
    let mut device = drive(0.15, "", SEGMENTED);
    assert_eq!(read(&mut device, 0.0, 90, 4).end, ms(9.7));
    // A hit: ten sectors from 9.8 on could cross by 11.3, the last is in at 11.4; 100 is in at 11.1: 11.1 + 4 * 0.15.
    let hit = read(&mut device, 9.7, 94, 10);
    assert_eq!((hit.end, hit.buffer_hit), (ms(11.7), true));
    let mut device = drive(0.15, "", SINGLE);
    read(&mut device, 0.0, 90, 4);
    assert_eq!(read(&mut device, 9.7, 94, 10).end, ms(11.7));
}

#[test]
fn a_write_over_a_slow_bus_does_not_count_on_a_track_crossing() {
    // The data cross from 9.3 on: 103 by 10.5, long before it begins at 11.3. But without the gap between the tracks it
    // would begin at 10.3, too early: the head waits a turn.
    let mut device = drive(0.15, "", SEGMENTED);
    assert_eq!(write(&mut device, 8.9, 96, 8).end, ms(21.4));
    // 0.2 sooner it does not.
    let mut device = drive(0.15, "", SEGMENTED);
    assert_eq!(write(&mut device, 8.7, 96, 8).end, ms(11.4));
}

#[test]
fn a_write_that_follows_on_takes_the_minimum_seek_too() {
    let mut device = drive(0.02, "minimum_seek = '2ms'", SEGMENTED);
    // Ready at 0.4, the arm at 2.4; 30 begins at 3.0.
    let first = write(&mut device, 0.0, 30, 4);
    assert_eq!((first.end, first.seek, first.rotation), (ms(3.4), ms(2.0), ms(0.6)));
    // Ready at 12.8 and the arm at 14.8, where 34 has begun at 13.4: it comes again at 23.4.
    let second = write(&mut device, 12.0, 34, 4);
    assert_eq!((second.end, second.seek), (ms(23.8), ms(2.0)));
    // A read has none.
    assert_eq!(read(&mut device, 50.0, 30, 4).seek, Nanos::ZERO);
}

#[test]
fn a_buffered_write_takes_the_minimum_seek_but_where_it_goes_on() {
    let buffer = SEGMENTED.replace("'media'", "'buffer'");
    let mut device = drive(0.02, "minimum_seek = '2ms'", &buffer);
    // Ready at 0.2, the arm at 2.2: 15 has begun at 1.5 and comes again at 11.5, out at 12.5. 25 goes on behind it, out
    // at 12.9: a read waits for that.
    write(&mut device, 0.0, 15, 10);
    write(&mut device, 11.0, 25, 4);
    let behind = read(&mut device, 11.5, 1000, 1);
    assert_eq!(behind.wait, ms(12.9 - 11.5 - 0.6));
}

#[test]
fn a_drive_with_the_extra_disconnect_fills_its_buffer_first() {
    let extra = "[controller.extra_write_disconnect]\ncommand = '0.5ms'\ndisconnect = '0ms'\npause = '0ms'
        second_disconnect = '0ms'";
    // The data cross from 0.4 on at 0.02 a sector: 4 by 0.48, 10 by 0.6, 15 by 0.7. Sector 5 begins at 0.5, 6 at 0.6.
    for (sector, sectors, end) in [(5, 4, 0.9), (5, 10, 11.5), (5, 12, 11.7), (6, 12, 1.8), (6, 44, 5.0), (6, 45, 15.1)]
    {
        let mut device = drive(0.02, extra, SEGMENTED);
        assert_eq!(write(&mut device, 0.0, sector, sectors).end, ms(end), "{sectors} from {sector}");
    }
    // Without it the first sector is enough.
    assert_eq!(write(&mut drive(0.02, "", SEGMENTED), 0.0, 5, 12).end, ms(1.7));
}
