//! Runs one scenario from the command line, without Python: `cargo run --release --example run FILE [key=value]...`

use headstart_sim::{simulate, Scenario, Source};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("the path of a scenario");
    let overrides: Vec<String> = arguments.collect();
    let report =
        Scenario::read(&Source::File(file.into()), &overrides).and_then(|scenario| simulate(&scenario, &mut |_| true));
    match report {
        // The reader of the output may have closed it.
        Ok(report) => drop(serde_json::to_writer_pretty(std::io::stdout().lock(), &report)),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(2);
        }
    }
}
