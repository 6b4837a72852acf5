//! Network namespaces of a test's own, and the words for skipping it.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

/// A network namespace, which goes when this is dropped and nobody stands in it.
#[derive(Debug)]
pub struct Namespace {
    holder: Child,
}

impl Namespace {
    /// Makes one. The error says what is missing here.
    pub fn new() -> Result<Self, String> {
        if !fs::exists("/dev/net/tun").unwrap_or(false) {
            return Err("there is no /dev/net/tun".to_owned());
        }
        let mut command = Command::new("unshare");
        let holder = command.args(["--net", "sleep", "300"]).stderr(std::process::Stdio::null());
        let mut this = Self { holder: holder.spawn().map_err(|e| format!("unshare: {e}"))? };
        let ours = fs::read_link("/proc/thread-self/ns/net").map_err(|e| e.to_string())?;
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            if let Ok(Some(_)) = this.holder.try_wait() {
                return Err("a network namespace is refused".to_owned());
            }
            if fs::read_link(this.path()).is_ok_and(|theirs| theirs != ours) {
                return Ok(this);
            }
            thread::sleep(Duration::from_millis(5));
        }
        Err("no network namespace within ten seconds".to_owned())
    }

    /// The file that names it.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.holder.id()).into()
    }

    /// Moves the calling thread into it.
    pub fn enter(&self) -> io::Result<()> {
        Ok(rustix::thread::move_into_link_name_space(File::open(self.path())?.as_fd(), None)?)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// As many namespaces as a test needs, or, said aloud, `None`: the test is skipped. Fails the test
/// where skipping is forbidden.
pub fn namespaces<const N: usize>(test: &str) -> Option<[Namespace; N]> {
    let made: Result<Vec<_>, _> = (0..N).map(|_| Namespace::new()).collect();
    match made {
        Ok(made) => Some(made.try_into().expect("as many as asked for")),
        Err(why) => {
            let forbidden = env::var_os("CI").is_some_and(|v| v == "true")
                || env::var_os("GRILSE_NO_SKIP").is_some_and(|v| v == "1");
            assert!(!forbidden, "{test} may not be skipped here, but {why}");
            // Not eprintln!: the test runner hides what that prints in a test that passes.
            let said = format!("SKIPPED (needs root/TUN): {test}: {why}\n");
            io::stderr().write_all(said.as_bytes()).expect("standard error is open");
            None
        }
    }
}
