//! Predictors: sequences worked out by hand, the plainest models that one can write, and common sense.

#[path = "../readahead/common.rs"]
#[allow(dead_code)]
mod common;

mod by_hand;
mod models;
mod sense;
