//! Predictors: sequences worked by hand, minimal models, and sanity checks.

#[path = "../readahead/common.rs"]
#[allow(dead_code)]
mod common;

mod by_hand;
mod models;
mod sense;
