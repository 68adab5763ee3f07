//! Coordinators against hand-worked request sequences, a naive second implementation, and their common promises.

mod common;
mod duel;
mod every_row;
mod naive;
mod pfc_by_hand;
mod pfc_naive;
mod pfc_variants;
