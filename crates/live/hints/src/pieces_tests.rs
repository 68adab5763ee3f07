//! The order of reads, worked out by hand.

use headstart_types::Block;

use super::pieces::{Cut, Pieces, Placed};

const ARM: Cut = Cut { by_address: true, hole_max: 4, pages_max: 16 };
const FLASH: Cut = Cut { by_address: false, hole_max: 1, pages_max: 16 };

fn placed(block: u32, file: u32, page: u64, address: u64) -> Placed {
    Placed { block: Block(block), file, page, address }
}

/// First page and number of pages, holes included, of each read.
fn reads(pieces: &mut Pieces, cut: Cut, mut holes: u64) -> Vec<(u32, u64, u64)> {
    let mut all = Vec::new();
    while let Some(piece) = pieces.next(cut, holes) {
        holes -= piece.count() - piece.pages.len() as u64;
        all.push((piece.pages[0].file, piece.first(), piece.count()));
    }
    all
}

fn of(cut: Cut, pages: &[Placed]) -> Pieces {
    let mut pieces = Pieces::default();
    pages.iter().for_each(|page| pieces.add(cut, *page));
    pieces
}

#[test]
fn an_arm_goes_by_address_and_reads_over_holes() {
    let pages = [placed(0, 1, 0, 500), placed(1, 0, 7, 107), placed(2, 0, 0, 100), placed(3, 0, 2, 102)];
    let mut pieces = of(ARM, &pages);
    // Page 7 comes after a hole of four pages.
    assert_eq!(reads(&mut pieces, ARM, 100), [(0, 0, 8), (1, 0, 1)]);
    assert_eq!(reads(&mut of(ARM, &pages), ARM, 1), [(0, 0, 3), (0, 7, 1), (1, 0, 1)], "one page of holes is left");
}

#[test]
fn without_an_arm_they_go_as_they_are_needed() {
    let pages = [placed(0, 1, 0, 500), placed(1, 0, 7, 107), placed(2, 0, 0, 100), placed(3, 0, 2, 102)];
    assert_eq!(reads(&mut of(FLASH, &pages), FLASH, 100), [(1, 0, 1), (0, 7, 1), (0, 0, 3)]);
}

#[test]
fn without_an_arm_neighbours_are_one_read_whenever_they_are_needed() {
    let pages = [placed(0, 0, 20, 120), placed(1, 1, 0, 500), placed(2, 0, 18, 118), placed(3, 0, 19, 119)];
    let later = [placed(4, 0, 23, 123), placed(5, 0, 22, 122), placed(6, 0, 15, 115), placed(7, 0, 17, 917)];
    let pages = [&pages[..], &later[..]].concat();
    // The page before page 18 lies elsewhere; between 20 and 22 is a hole of one page.
    assert_eq!(reads(&mut of(FLASH, &pages), FLASH, 100), [(0, 18, 6), (1, 0, 1), (0, 15, 1), (0, 17, 1)]);
    let wide: Vec<_> = (0..40).map(|at| placed(at, 0, u64::from(40 - at), u64::from(40 - at))).collect();
    assert_eq!(reads(&mut of(FLASH, &wide), FLASH, 0), [(0, 25, 16), (0, 9, 16), (0, 1, 8)], "downward");
}

#[test]
fn what_is_apart_on_the_disk_is_apart() {
    let pages = [placed(0, 0, 0, 100), placed(1, 0, 1, 900), placed(2, 0, 2, 901)];
    assert_eq!(reads(&mut of(ARM, &pages), ARM, 100), [(0, 0, 1), (0, 1, 2)]);
}

#[test]
fn the_arm_goes_upward_and_begins_again() {
    let mut pieces = of(ARM, &[placed(0, 0, 50, 50)]);
    assert_eq!(reads(&mut pieces, ARM, 0), [(0, 50, 1)]);
    pieces.add(ARM, placed(1, 0, 10, 10));
    pieces.add(ARM, placed(2, 0, 70, 70));
    pieces.add(ARM, placed(3, 0, 90, 90));
    assert!(pieces.cancel(ARM, &placed(3, 0, 90, 90)) && !pieces.cancel(ARM, &placed(3, 0, 90, 90)));
    assert_eq!(reads(&mut pieces, ARM, 0), [(0, 70, 1), (0, 10, 1)]);
}

#[test]
fn reads_are_no_longer_than_allowed() {
    let pages: Vec<_> = (0..40).map(|at| placed(at, 0, u64::from(at), u64::from(at))).collect();
    assert_eq!(reads(&mut of(ARM, &pages), ARM, 0), [(0, 0, 16), (0, 16, 16), (0, 32, 8)]);
}
