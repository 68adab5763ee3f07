//! The segmented buffer on a small drive, every number worked out by hand.
//!
//! 6000 rpm: a revolution is 10 ms. 100 sectors per track, so a sector passes in 0.1 ms, and sector s of track 0 begins
//! at s / 10 ms of a revolution. One surface, skew 10: track 1 begins 1 ms later, at 11 ms. A seek by d cylinders takes
//! 0.5 ms + 0.1 ms d, so that a move to the next, 0.6 ms, fits the skew. The bus takes 0.02 ms per sector. Overheads in
//! ms after a read: hit 0.1, miss 0.3, buffered write 0.2, write-through 0.4; after a write twice that.

use headstart_device::{build_device, Device, Mechanical, Request};
use headstart_types::Nanos;
use toml::Table;

use crate::small_drive::{ms, read, small, write};

fn drive(buffer: &str) -> Mechanical {
    small(0.02, "", buffer)
}

const TWO: &str = "segments = 2\nsegment_sectors = 50\nread_ahead = 'segment'\nwrite_reporting = 'buffer'\n";

#[test]
fn a_miss_then_hits_behind_it() {
    let mut device = drive(TWO);
    // Miss: ready at 0.3; sector 10 begins at 1.0, four have passed at 1.4, the last crosses the bus by 1.42.
    let miss = read(&mut device, 0.0, 10, 4);
    assert_eq!((miss.end, miss.seek, miss.rotation), (ms(1.42), Nanos::ZERO, ms(0.7)));
    assert_eq!((miss.transfer, miss.overhead, miss.buffer_hit), (ms(0.4), ms(0.32), false));
    // At 1.75 sectors 14, 15 and 16 are in: 14 and 15 are a whole hit, 0.1 + 2 * 0.02.
    let hit = read(&mut device, 1.75, 14, 2);
    assert_eq!((hit.end, hit.overhead, hit.transfer, hit.buffer_hit), (ms(1.89), ms(0.1), ms(0.04), true));
    // At 1.95 sectors up to 18 are in; 20 and 21 are not: a miss, though the head is near. Sector 19 passes until 2.0;
    // ready at 2.25, sector 20 has begun at 2.0 and comes again at 12.0.
    let near = read(&mut device, 1.95, 20, 2);
    assert_eq!((near.end, near.rotation, near.buffer_hit), (ms(12.22), ms(9.75), false));
}

#[test]
fn a_partial_hit_waits_for_the_media() {
    let mut device = drive(TWO);
    read(&mut device, 0.0, 10, 4);
    // At 2.05 sectors up to 19 are in. Of 18..26 the last has passed at 2.6: bus until 2.62.
    let part = read(&mut device, 2.05, 18, 8);
    assert_eq!((part.end, part.buffer_hit), (ms(2.62), true));
    // The read-ahead goes on to 26 + 50: sector 75 has passed at 7.6. At 9.0 it has stopped; 70..75 are there,
    // 76..80 are fetched from 9.3 on: sector 76 begins at 17.6, sector 79 has passed at 18.0.
    let more = read(&mut device, 9.0, 70, 10);
    assert_eq!((more.end, more.buffer_hit), (ms(18.02), true));
}

#[test]
fn segments_are_given_up_in_turn() {
    let mut device = drive(TWO);
    for (at, sector) in [(0.0, 10), (100.0, 1010), (200.0, 2010)] {
        assert!(!read(&mut device, at, sector, 4).buffer_hit);
    }
    // 10.. was least recently used and was replaced; 1010.. is there.
    assert!(read(&mut device, 300.0, 1020, 4).buffer_hit);
    assert!(!read(&mut device, 400.0, 20, 4).buffer_hit);
    assert!(!read(&mut device, 500.0, 2020, 4).buffer_hit);
}

#[test]
fn a_write_goes_out_behind_the_hosts_back() {
    let mut device = drive(TWO);
    // 0.2 and ten sectors on the bus. On the media: the arm moves from 0.2 to 1.7 (10 cylinders); sector 1000 lies at
    // 10 * 10 sectors of skew, angle 0, and begins at 10.0: out at 11.0.
    let first = write(&mut device, 0.0, 1000, 10);
    assert_eq!((first.end, first.transfer, first.wait, first.buffer_hit), (ms(0.4), ms(0.2), Nanos::ZERO, true));
    // What was written is read from the buffer at once: 0.2 after a write, 4 * 0.02.
    let back = read(&mut device, 1.0, 1004, 4);
    assert_eq!((back.end, back.buffer_hit), (ms(1.28), true));
    // A read elsewhere waits for the media until 11.0, from where it is ready at 2.3. Back to cylinder 0 takes 1.5:
    // at 12.5 sector 30 is still to come, at 13.0.
    let elsewhere = read(&mut device, 2.0, 30, 1);
    assert_eq!((elsewhere.wait, elsewhere.seek, elsewhere.rotation), (ms(8.7), ms(1.5), ms(0.5)));
    assert_eq!(elsewhere.end, ms(13.12));
}

#[test]
fn writes_wait_for_a_free_segment_or_share_one() {
    let mut device = drive(&format!("{TWO}write_segments = 1\n"));
    write(&mut device, 0.0, 1000, 10); // out at 11.0, as above
                                       // 1010 goes on where that ends: it shares the segment, and its data follow on
                                       // the media until 11.5.
    let on = write(&mut device, 0.5, 1010, 5);
    assert_eq!((on.end, on.wait), (ms(1.0), Nanos::ZERO)); // 0.4 after a write, 5 * 0.02
                                                           // Elsewhere: ready at 1.4, but there is room at 11.5 only.
    let off = write(&mut device, 1.0, 3000, 5);
    assert_eq!((off.end, off.wait), (ms(11.6), ms(10.1)));
    // With two write segments there is room at once.
    let mut device = drive(TWO);
    write(&mut device, 0.0, 1000, 10);
    assert_eq!(write(&mut device, 1.0, 3000, 5).end, ms(1.5));
}

#[test]
fn a_write_shares_a_segment_that_it_fills_and_no_smaller_one() {
    // Ten sectors at 1000, out at 11.0. Forty more fill the segment of 50: 0.4 after a write, 40 * 0.02.
    let one = || drive(&format!("{TWO}write_segments = 1\n"));
    let mut device = one();
    write(&mut device, 0.0, 1000, 10);
    let fills = write(&mut device, 0.5, 1010, 40);
    assert_eq!((fills.end, fills.wait), (ms(1.7), Nanos::ZERO));
    // One more does not fit: ready at 0.9, with room at 11.0.
    let mut device = one();
    write(&mut device, 0.0, 1000, 10);
    assert_eq!(write(&mut device, 0.5, 1010, 41).wait, ms(10.1));
}

#[test]
fn a_write_to_the_media() {
    let mut device = drive(&TWO.replace("'buffer'", "'media'"));
    // Ready at 0.4; sector 30 begins at 3.0, 33 has passed at 3.4.
    let through = write(&mut device, 0.0, 30, 4);
    assert_eq!((through.end, through.rotation, through.buffer_hit), (ms(3.4), ms(2.6), false));
    // 34 follows: ready at 4.2, it comes round at 13.4.
    assert_eq!(write(&mut device, 3.4, 34, 4).end, ms(13.8));
}

#[test]
fn what_passes_before_the_request_is_kept() {
    let mut device = drive(&format!("{TWO}read_before = true\n"));
    // The head is ready at 0.3: sectors 3 to 39 pass before 40. A segment of 50 holds 40..44 and what lies before.
    assert_eq!(read(&mut device, 0.0, 40, 4).end, ms(4.42));
    assert!(read(&mut device, 4.42, 3, 4).buffer_hit);
    // Not without it.
    let mut device = drive(TWO);
    read(&mut device, 0.0, 40, 4);
    assert!(!read(&mut device, 4.42, 20, 4).buffer_hit);
}

#[test]
fn sectors_in_the_order_in_which_they_pass() {
    let wide = TWO.replace("50", "200").replace("'segment'", "'none'").replace("'buffer'", "'media'");
    let wide = format!("{wide}zero_latency_read = true\nzero_latency_write = true\n");
    let mut device = drive(&wide);
    // Ready at 0.3 over sector 3: sectors 3 to 99 pass first, then 0 to 2: all are in at 10.3. The bus takes them in
    // their order from 10.1 on, when sector 0 is in: 100 * 0.02.
    let track = read(&mut device, 0.0, 0, 100);
    assert_eq!((track.end, track.rotation, track.transfer), (ms(12.1), ms(9.7), ms(0.3)));
    // Ready at 14.4 over sector 44 with all data across by then (14.0 + 0.4 + ... + 40 * 0.02 = 15.2): not yet, so it
    // waits for sector 30, at 23.0, and is out at 27.0.
    assert_eq!(write(&mut device, 14.0, 30, 40).end, ms(27.0));
    // After a seek by 20 cylinders from 28.8 to 31.3, angle 13, with four sectors across at 28.88: track 20 begins at
    // angle 200, so its sector 11 passes at angle 11 and its sector 13 now. 13 and 14 pass first, then 11 and 12,
    // until 41.3.
    let split = write(&mut device, 28.0, 2011, 4);
    assert_eq!((split.seek, split.end), (ms(2.5), ms(41.3)));
}

#[test]
fn the_arm_travels() {
    let mut device = drive(TWO);
    read(&mut device, 0.0, 10, 4);
    // The read-ahead is broken off at the end of the sector that passes at 2.05: 2.1; 20 cylinders take 2.5 ms.
    assert_eq!(device.travel(ms(2.05), 2050), ms(4.6));
    // Sector 2050 lies at 20 * 10 + 50: angle 50. Ready at 5.0 when it begins.
    let there = read(&mut device, 4.7, 2050, 1);
    assert_eq!((there.seek, there.rotation), (Nanos::ZERO, Nanos::ZERO));
    assert!(read(&mut device, 10.0, 12, 4).buffer_hit);
}

#[test]
fn a_profile_of_each_kind_builds() {
    for buffer in ["size = '0KiB'\nread_ahead = false", "size = '64KiB'\nread_ahead = true", TWO] {
        assert_eq!(drive(buffer).capacity_sectors(), Some(5000));
    }
    assert!(build_device("small.toml", Table::new()).is_err());
}

/// The head only reads ahead after a read that begins where an earlier one ended.
fn on_sequence() -> Mechanical {
    drive(&format!("{TWO}read_ahead_on_sequence = true\n"))
}

#[test]
fn the_second_read_of_a_sequence_reads_ahead() {
    let mut device = on_sequence();
    assert!(device.mechanics().expect("an arm").reads_ahead_on_sequence);
    read(&mut device, 0.0, 10, 4);
    // Nothing was read behind sector 13: ready at 2.05, sector 14 begins at 11.4, 15 has passed at 11.6.
    let second = read(&mut device, 1.75, 14, 2);
    assert_eq!((second.end, second.rotation, second.buffer_hit), (ms(11.62), ms(9.35), false));
    // Sectors 16 to 19 have followed by 12.0.
    let third = read(&mut device, 12.0, 16, 4);
    assert_eq!((third.end, third.buffer_hit), (ms(12.18), true));
    // Nothing is read ahead after reads that skip sectors.
    let mut device = on_sequence();
    for (at, sector) in [(0.0, 10), (100.0, 15), (200.0, 20)] {
        assert!(!read(&mut device, at, sector, 4).buffer_hit);
        assert!(!read(&mut device.clone(), at + 50.0, sector + 4, 1).buffer_hit);
    }
}

#[test]
fn a_sequence_takes_one_segment() {
    let mut device = on_sequence();
    // The second read of 1010.. leaves the other segment alone, which knows of 10.. where it ended.
    for (at, sector) in [(0.0, 10), (100.0, 1010), (200.0, 1014), (300.0, 14)] {
        assert!(!read(&mut device, at, sector, 4).buffer_hit);
    }
    assert!(read(&mut device, 400.0, 1018, 4).buffer_hit);
    assert!(read(&mut device, 500.0, 18, 4).buffer_hit);
    // After two reads elsewhere, nothing is known of them.
    for (at, sector) in [(600.0, 2010), (700.0, 3010), (800.0, 22), (900.0, 1022)] {
        assert!(!read(&mut device, at, sector, 4).buffer_hit);
    }
    assert!(!read(&mut device, 950.0, 1026, 4).buffer_hit, "1022 was a first one");
    assert!(read(&mut device, 1050.0, 1030, 4).buffer_hit);
}

#[test]
fn a_hit_at_another_place_lets_the_read_ahead_go_no_further() {
    // 10.. and 14.. let the head read up to sector 67; 30.., a hit, no further. A read at 68 begins anew.
    let mut device = on_sequence();
    read(&mut device, 0.0, 10, 4);
    read(&mut device, 50.0, 14, 4);
    assert!(read(&mut device, 54.0, 30, 4).buffer_hit);
    assert!(read(&mut device.clone(), 90.0, 67, 1).buffer_hit);
    assert!(!read(&mut device, 90.0, 68, 1).buffer_hit);
}

/// The head reads on while the controller processes a read.
fn reading_on() -> Mechanical {
    drive(&format!("{TWO}read_during_overhead = true\n"))
}

#[test]
fn a_read_is_looked_up_when_it_has_been_taken_in() {
    let mut device = reading_on();
    read(&mut device, 0.0, 10, 4);
    // At 1.85, after the overhead of a hit, sectors up to 17 are in: 16 and 17, which were not at 1.75, are a whole
    // hit.
    let hit = read(&mut device, 1.75, 16, 2);
    assert_eq!((hit.end, hit.overhead, hit.transfer, hit.buffer_hit), (ms(1.89), ms(0.1), ms(0.04), true));
    // At 2.05 sectors up to 19 are in, and 20 is not; at 2.25, when the arm could move, 20 and 21 are: no wait for the
    // media, but the overhead of a miss.
    let late = read(&mut device, 1.95, 20, 2);
    assert_eq!((late.end, late.overhead, late.transfer, late.buffer_hit), (ms(2.29), ms(0.3), ms(0.04), true));
}

#[test]
fn a_miss_breaks_off_when_the_arm_can_move() {
    // Taken in at 2.25, while sector 22 passes until 2.3. 10 cylinders take 1.5 ms; sector 1010 lies at angle 10 and
    // begins at 11.0. Without the key the arm has left at 2.0, and is there no sooner.
    for (mut device, wait, there) in [(reading_on(), 0.05, true), (drive(TWO), 0.0, false)] {
        read(&mut device, 0.0, 10, 4);
        let miss = Request::read(1010, 4, 0);
        let positioning = device.positioning(ms(1.95), &miss);
        let away = device.serve(ms(1.95), &miss);
        assert_eq!((away.end, away.seek, away.wait, away.overhead), (ms(11.42), ms(1.5), ms(wait), ms(0.32)));
        assert_eq!(positioning, away.wait + away.seek + away.rotation);
        // Sector 22 was read in the overhead.
        assert_eq!(read(&mut device, 30.0, 22, 1).buffer_hit, there);
    }
}

#[test]
fn a_whole_hit_elsewhere_breaks_off_when_it_is_decoded() {
    // The stream at 1010 goes on: sector s is in at (s - 899) / 10. At 112.05 sector 1020 is passing, at 112.15,
    // after the overhead of a hit, sector 1021, which is in when it has passed.
    for (mut device, there) in [(reading_on(), true), (drive(TWO), false)] {
        read(&mut device, 0.0, 10, 4); // and on to 64
        assert_eq!(read(&mut device, 100.0, 1010, 4).end, ms(111.42));
        assert_eq!(read(&mut device, 112.05, 20, 4).end, ms(112.23));
        assert_eq!(read(&mut device, 113.0, 1021, 1).buffer_hit, there);
    }
    let mut device = reading_on();
    read(&mut device, 0.0, 10, 4);
    read(&mut device, 100.0, 1010, 4);
    read(&mut device, 112.05, 20, 4);
    assert!(!read(&mut device, 113.0, 1022, 1).buffer_hit);
}

#[test]
fn a_partial_hit_elsewhere_breaks_off_when_the_arm_can_move() {
    // 60..64 are there, 64..70 are not. The arm leaves at 112.4 (112.35, while sector 1023 passes) or 112.1 and is
    // back at 113.9 or before; sector 64 begins at 116.4.
    for (mut device, there) in [(reading_on(), true), (drive(TWO), false)] {
        read(&mut device, 0.0, 10, 4);
        read(&mut device, 100.0, 1010, 4);
        let part = read(&mut device, 112.05, 60, 10);
        assert_eq!((part.end, part.overhead, part.buffer_hit), (ms(117.02), ms(0.1), true));
        assert_eq!(read(&mut device, 130.0, 1023, 1).buffer_hit, there);
    }
}

#[test]
fn a_write_breaks_off_when_it_comes() {
    let mut device = reading_on();
    read(&mut device, 0.0, 10, 4);
    // At 1.95 sector 19 passes until 2.0; the write's overhead of 0.2 reads no further.
    write(&mut device, 1.95, 1000, 4);
    assert!(read(&mut device, 30.0, 19, 1).buffer_hit);
    assert!(!read(&mut device, 60.0, 20, 1).buffer_hit);
}

#[test]
fn a_hit_reads_ahead_again_and_keeps_what_was_not_asked_for() {
    let mut device = drive(&format!("{TWO}read_ahead_on_hit = true\n"));
    read(&mut device, 0.0, 10, 4); // and on to 64, where the segment is full
    let hit = read(&mut device, 40.0, 14, 4);
    assert_eq!((hit.end, hit.buffer_hit), (ms(40.18), true));
    // There is room for four more: the head is ready at 40.1 and waits for sector 64 until 46.4. A read of it waits
    // too.
    assert_eq!(read(&mut device.clone(), 40.2, 64, 2).end, ms(46.62));
    // At 46.8 they are in, and 18 to 67 are held.
    for (at, sector) in [(80.0, 18), (120.0, 22), (160.0, 26)] {
        assert_eq!(read(&mut device, at, sector, 4).end, ms(at + 0.18), "{sector}");
    }
}

/// A read ahead of the stream is served by reading on.
fn hits_ahead(sectors: u32) -> Mechanical {
    drive(&format!("{}hit_ahead = true\n", TWO.replace("50", &sectors.to_string())))
}

#[test]
fn a_read_ahead_of_the_stream_is_served_by_reading_on() {
    // At 1.95 the head is within sector 19, on its way to 64: 20 and 21 are in at 2.2, 30 and 31 at 3.2.
    for (sector, positioning, end, otherwise) in
        [(20, 0.0, 2.22, 12.22), (30, 0.95, 3.22, 3.22), (63, 4.25, 6.52, 6.52)]
    {
        let request = Request::read(sector, 2, 0);
        let mut device = hits_ahead(50);
        read(&mut device, 0.0, 10, 4);
        assert_eq!(device.positioning(ms(1.95), &request), ms(positioning), "{sector}");
        let on = device.serve(ms(1.95), &request);
        assert_eq!((on.end, on.overhead, on.buffer_hit), (ms(end), ms(0.1), true), "{sector}");
        // The skipped sectors have been read.
        assert!(device.serve(on.end, &Request::read(16, 4, 0)).buffer_hit, "{sector}");
        let mut device = drive(TWO);
        read(&mut device, 0.0, 10, 4);
        let off = device.serve(ms(1.95), &request);
        assert_eq!((off.end, off.buffer_hit), (ms(otherwise), false), "{sector}");
    }
}

#[test]
fn a_read_too_far_ahead_is_not() {
    // The segment ends at 64: the stream does not come to sector 64 by itself.
    let mut device = hits_ahead(50);
    read(&mut device, 0.0, 10, 4);
    assert!(!read(&mut device, 1.95, 64, 2).buffer_hit);
    // With 400 sectors it comes to 350 over three tracks, at 38.0. The arm leaves at 2.0, is ready at 2.25 and there at
    // 3.05, before 350, at angle 80, begins at 8.0.
    let mut device = hits_ahead(400);
    read(&mut device, 0.0, 10, 4);
    let request = Request::read(350, 2, 0);
    assert_eq!(device.positioning(ms(1.95), &request), ms(5.75));
    let off = device.serve(ms(1.95), &request);
    assert_eq!((off.end, off.seek, off.buffer_hit), (ms(8.22), ms(0.8), false));
    // Sector 105 begins at 11.5 either way, sector 150, at angle 60, at 16.0 or, if the arm goes there at once, at 6.0.
    for (sector, end, on) in [(105, 11.72, true), (150, 6.22, false)] {
        let mut device = hits_ahead(400);
        read(&mut device, 0.0, 10, 4);
        let service = read(&mut device, 1.95, sector, 2);
        assert_eq!((service.end, service.buffer_hit), (ms(end), on), "{sector}");
    }
}
