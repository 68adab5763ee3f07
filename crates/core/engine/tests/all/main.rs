//! The engine driven by test hosts: hand-worked cases, conformance, naive models.

mod by_hand;
mod bypass;
mod canary;
mod conformance;
mod fresh;
mod host;
mod just_in_time;
mod naive_hinted;
mod naive_just_in_time;
mod observer;
