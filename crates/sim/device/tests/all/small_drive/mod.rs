//! The small drive of the hand-worked tests: see `segments.rs`.

use headstart_device::{Device, Mechanical, Request, Service};
use headstart_types::Nanos;
use toml::Table;

/// With a bus time per sector in ms, more keys of the controller, and a buffer.
pub fn small(bus: f64, controller: &str, buffer: &str) -> Mechanical {
    let profile = format!(
        "name = 'small'
        rpm = 6000
        surfaces = 1
        head_switch = '0.1ms'
        nominal_service = '8ms'
        zones = [{{cylinders = 50, sectors_per_track = 100, track_skew = 10, cylinder_skew = 10}}]
        seek = {{form = 'sum', constant = '0.5ms', linear = '0.1ms', root = '0ms'}}
        bus = {{sector_time = '{bus}ms'}}
        [controller]
        read_hit_after_read = '0.1ms'
        read_hit_after_write = '0.2ms'
        read_miss_after_read = '0.3ms'
        read_miss_after_write = '0.6ms'
        write_hit_after_read = '0.2ms'
        write_hit_after_write = '0.4ms'
        write_miss_after_read = '0.4ms'
        write_miss_after_write = '0.8ms'
        {controller}
        [buffer]
        {buffer}"
    );
    Mechanical::from_table(profile.parse::<Table>().unwrap()).unwrap()
}

/// Milliseconds.
pub fn ms(ms: f64) -> Nanos {
    Nanos::from_millis_f64(ms)
}

/// Serves a read that arrives at `at` milliseconds.
pub fn read(device: &mut Mechanical, at: f64, sector: u64, sectors: u32) -> Service {
    device.serve(ms(at), &Request::read(sector, sectors, 0))
}

/// Serves a write that arrives at `at` milliseconds.
pub fn write(device: &mut Mechanical, at: f64, sector: u64, sectors: u32) -> Service {
    device.serve(ms(at), &Request::write(sector, sectors, 0))
}
