//! The options of `headstart store`. The parser, help, documentation, Python's keywords and errors are generated from
//! this struct.

use std::net::SocketAddr;
use std::path::PathBuf;

use headstart_host::metrics::check_target;
use headstart_nbd::{address, AccessKeys};
use headstart_types::{as_text, keys, Bytes, KeyError};

/// Below this, a cache does not hold what is under way.
const CACHE_MIN: Bytes = Bytes(1 << 20);

keys! {
    /// Which objects are cached, where, and for whom.
    pub struct Settings {
        /// The objects: s3://BUCKET[/PREFIX], gs://, az://, https://HOST/PATH/, nbd://HOST/EXPORT or a folder.
        #[schemars(extend("x-argument" = true, "x-required" = true, "x-metavar" = "SOURCE", "x-file" = "url"))]
        pub source: String = String::new(),
        /// Serve the objects over S3 (read-only) at this address.
        #[schemars(extend("x-metavar" = "HOST:PORT"))]
        pub s3: Option<String> = None,
        /// Serve Python programs of this machine over this Unix socket, through shared memory.
        #[schemars(extend("x-metavar" = "PATH", "x-file" = "any"))]
        pub shared: Option<PathBuf> = None,
        /// Memory for objects.
        #[serde(serialize_with = "as_text")]
        #[schemars(extend("x-metavar" = "SIZE"))]
        pub cache: Bytes = Bytes(1 << 30),
        /// Keep what leaves the memory in a folder of a local disk, also for later runs.
        #[schemars(extend("x-metavar" = "FOLDER:SIZE"))]
        pub spill: Option<String> = None,
        /// Maximum number of requests at a time that read ahead.
        #[schemars(range(min = 1, max = 1024), extend("x-metavar" = "N"))]
        pub requests: u32 = 64,
        /// Do not send a second request for one whose answer begins later than 99 % of the others.
        pub no_hedge: bool = false,
        /// Write what is read to a trace, which --hints and the simulator read.
        #[schemars(extend("x-metavar" = "TRACE.csv", "x-file" = "own"))]
        pub record: Option<PathBuf> = None,
        /// Write metrics to a file, or serve them to collectors at a local address.
        #[schemars(extend("x-names" = ["--openmetrics", "--metrics"], "x-metavar" = "FILE|HOST:PORT"))]
        pub openmetrics: Option<String> = None,
        /// Read ahead what this trace names, in its order: one of --record, or any that names files.
        #[schemars(extend("x-metavar" = "TRACE", "x-file" = "own"))]
        pub hints: Option<PathBuf> = None,
        /// End when no program has been connected to the Unix socket for this many seconds.
        #[schemars(range(min = 0), extend("x-metavar" = "SECONDS"))]
        pub linger: Option<f64> = None,
        /// The key that S3 clients must sign with: a file with its id and its secret, a line each. Default: none.
        #[schemars(extend("x-metavar" = "FILE", "x-file" = "any"))]
        pub s3_key: Option<PathBuf> = None,
        /// Who may connect to the S3 address, and how.
        #[schemars(extend("x-flat" = {
            "insecure": "Allow connections without encryption where they are refused otherwise.",
            "tls_cert": "The server's certificate (PEM). S3 clients must then use TLS.",
        }))]
        pub access: AccessKeys = AccessKeys::default(),
    }
    impl check = Settings::checked;
}

impl Settings {
    fn checked(&self) -> Result<(), KeyError> {
        let refused = |key, problem: &str, allowed: &str| Err(KeyError::new(key, problem, allowed));
        if self.source.is_empty() {
            return refused("source", "is missing", crate::FORMS);
        }
        if self.s3.is_none() && self.shared.is_none() {
            return refused("s3", "nobody could reach the store", "--s3 HOST:PORT, --shared PATH, or both");
        }
        if self.cache.0 < CACHE_MIN.0 {
            return refused("cache", &format!("{} is too little", self.cache), &format!("at least {CACHE_MIN}"));
        }
        if self.linger.is_some() && (self.shared.is_none() || self.s3.is_some()) {
            return refused("linger", "only programs at --shared are counted", "with --shared and without --s3");
        }
        if self.s3_key.is_some() && self.s3.is_none() {
            return refused("s3_key", "given without --s3", "both, or neither");
        }
        self.openmetrics.as_deref().map_or(Ok(()), check_target)?;
        if self.access.tls(None)?.is_some() && self.s3.is_none() {
            return refused("tls_cert", "given without --s3", "both, or neither");
        }
        Ok(())
    }

    /// The address of the S3 door.
    ///
    /// # Errors
    /// It is no address, or other machines reach it and it is not allowed.
    pub fn address(&self) -> Result<Option<SocketAddr>, KeyError> {
        let Some(text) = &self.s3 else { return Ok(None) };
        let text = text.strip_prefix("tcp:").unwrap_or(text);
        let found = address("s3", text, "HOST:PORT such as 127.0.0.1:9005")?;
        self.access.check("s3", text, found)?;
        Ok(Some(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_types::read_options;

    #[test]
    fn mistakes_name_the_option() {
        for (text, said) in [
            ("", "source: is missing; allowed: s3://BUCKET"),
            ("source = \".\"", "s3: nobody could reach the store; allowed: --s3 HOST:PORT"),
            ("source = \".\"\ns3 = \"x:1\"\ncache = \"5KiB\"", "cache: 5KiB is too little; allowed: at least 1MiB"),
            ("source = \".\"\ns3 = \"x:1\"\nlinger = 1", "linger: only programs at --shared"),
            ("source = \".\"\nshared = \"x\"\ns3_key = \"k\"", "s3_key: given without --s3"),
            ("source = \".\"\ns3 = \"x:1\"\ntls_key = \"k\"", "tls_cert: is missing"),
            ("source = \".\"\ns3 = \"x:1\"\nopenmetrics = \"0.0.0.0:9\"", "openmetrics: 0.0.0.0:9 can be reached"),
            ("source = \".\"\ns3 = \"x:1\"\nrequests = 0", "requests: 0 is out of range"),
        ] {
            let read: Result<Settings, _> = read_options(text.parse().expect("TOML"));
            let error = read.map(|_| ()).expect_err(text).to_string();
            assert!(error.starts_with(said), "{error}");
        }
        let address = |s3: &str| {
            let text = format!("source = \".\"\ns3 = \"{s3}\"");
            read_options::<Settings>(text.parse().expect("TOML")).and_then(|settings| settings.address())
        };
        assert_eq!(address("127.0.0.1:9").expect("it is one").map(|address| address.port()), Some(9));
        let error = address("0.0.0.0:9").expect_err("it is remote").to_string();
        assert!(error.starts_with("s3: 0.0.0.0:9 can be reached from other machines; allowed:"), "{error}");
        assert!(address("nine").is_err());
    }
}
