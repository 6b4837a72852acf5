//! The examples, run as a user runs them, with kernel sockets at both ends.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use sha2::{Digest, Sha256};

mod support;
use support::namespace::{Namespace, namespaces};

const LEFT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const RIGHT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
const PORT: u16 = 7000;

/// TCP and UDP of the kernel through the proxy: every byte arrives, and super-packets leave it.
#[test]
fn proxy_carries_super_packets() {
    let Some([left, right]) = namespaces("proxy_carries_super_packets") else { return };
    let device = |name: &str, at: &Namespace| format!("{name}@{}", at.path().display());
    let args = [device("left0", &left), "10.9.0.1/24".into(), device("right0", &right)];
    let mut proxy = Example::start("proxy", args.into_iter().chain(["10.9.0.2/24".into()]));
    within(&right, || tcp_echo(&left));
    within(&right, || udp_arrives(&left));
    let said = proxy.end();
    let lines: Vec<&str> = said.lines().collect();
    let [there, back] = lines[..] else { panic!("{said}") };
    for line in [there, back] {
        assert!(number(line, "of them super-packets") > 50, "{said}");
        assert_eq!((number(line, "refused"), number(line, "lost")), (0, 0), "{said}");
    }
    assert!(number(there, "merged") > 0, "the datagrams came singly, and left as trains: {said}");
}

/// TCP of the kernel between two ends of the VPN: super-packets are cut for the path and made again
/// behind it, and every byte arrives.
#[test]
fn vpn_cuts_and_coalesces() {
    let Some([left, right]) = namespaces("vpn_cuts_and_coalesces") else { return };
    // Ports that are free now; both ends of the path stand in the namespace of the test.
    let path = [0; 2].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let start = |at: &Namespace, address: &str, local: usize| {
        let device = format!("vpn0@{}", at.path().display());
        let (here, there) = (path[local].to_string(), path[1 - local].to_string());
        Example::start("tun_rs", [device, address.to_owned(), here, there])
    };
    let mut ends = [start(&left, "10.9.0.1/24", 0), start(&right, "10.9.0.2/24", 1)];
    within(&right, || tcp_echo(&left));
    for end in &mut ends {
        let said = end.end();
        let (trains, sent) = (number(&said, "super-packets and"), number(&said, "datagrams\n"));
        assert!(trains > 50 && sent > 10 * trains, "cut: {said}");
        let (datagrams, packets) = (number(&said, "datagrams became"), number(&said, "packets, "));
        assert!(packets < datagrams / 2, "coalesced: {said}");
        assert!(number(&said, "of them super-packets") > 50, "{said}");
    }
}

/// Sends 16 MiB to an echo server, which stands in the caller's namespace, and compares the hash.
fn tcp_echo(client: &Namespace) {
    let listener = wait_for(|| TcpListener::bind((RIGHT, PORT)));
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut socket, _) = listener.accept().unwrap();
            let mut writing = socket.try_clone().unwrap();
            std::io::copy(&mut socket, &mut writing).unwrap();
            writing.shutdown(std::net::Shutdown::Write).unwrap();
        });
        scope.spawn(|| {
            client.enter().unwrap();
            let mut socket = wait_for(|| TcpStream::connect((RIGHT, PORT)));
            let mut sending = socket.try_clone().unwrap();
            let sent = scope.spawn(move || {
                let mut hash = Sha256::new();
                for n in 0..256u32 {
                    let block: Vec<u8> = (0..65_536u32).map(|i| (i * 7 + n * 13) as u8).collect();
                    sending.write_all(&block).unwrap();
                    hash.update(&block);
                }
                sending.shutdown(std::net::Shutdown::Write).unwrap();
                hash.finalize()
            });
            let mut hash = Sha256::new();
            let mut block = vec![0; 1 << 16];
            loop {
                match socket.read(&mut block).unwrap() {
                    0 => break,
                    n => hash.update(&block[..n]),
                }
            }
            assert_eq!(hash.finalize(), sent.join().unwrap());
        });
    });
}

/// Bursts of datagrams, small enough for the receiver's buffer: none is lost, none is changed.
fn udp_arrives(client: &Namespace) {
    let receiver = UdpSocket::bind((RIGHT, PORT)).unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    thread::scope(|scope| {
        let (next, burst) = std::sync::mpsc::channel::<u8>();
        scope.spawn(move || {
            client.enter().unwrap();
            let socket = UdpSocket::bind((LEFT, PORT)).unwrap();
            for burst in burst {
                for n in 0..40 {
                    socket.send_to(&[burst ^ n; 1000], (RIGHT, PORT)).unwrap();
                }
            }
        });
        let mut datagram = [0; 2000];
        for burst in 0..50 {
            next.send(burst).unwrap();
            for n in 0..40 {
                let len = receiver.recv(&mut datagram).unwrap();
                assert_eq!(datagram[..len], [burst ^ n; 1000]);
            }
        }
    });
}

/// Runs `work` on a thread that stands in the namespace.
fn within(namespace: &Namespace, work: impl FnOnce() + Send) {
    thread::scope(|scope| {
        scope.spawn(|| {
            namespace.enter().unwrap();
            work();
        });
    });
}

/// Tries again until the devices are up.
fn wait_for<T>(mut attempt: impl FnMut() -> std::io::Result<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match attempt() {
            Ok(value) => return value,
            Err(e) if Instant::now() > deadline => panic!("{e}"),
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// The number in front of `what`.
fn number(line: &str, what: &str) -> usize {
    let before = line.split(what).next().filter(|before| *before != line);
    let word = before.and_then(|before| before.split_whitespace().last());
    word.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("no number of {what}: {line}"))
}

/// A running example, which ends with its standard input.
struct Example(Child);

impl Example {
    fn start(name: &str, args: impl IntoIterator<Item = String>) -> Self {
        let test = env::current_exe().unwrap();
        let profile: PathBuf = test.ancestors().nth(2).unwrap().into();
        let program = profile.join("examples").join(name);
        assert!(program.exists(), "{}: cargo build --examples makes it", program.display());
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    fn end(&mut self) -> String {
        drop(self.0.stdin.take());
        let mut said = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(self.0.wait().unwrap().success());
        said
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        // A test that failed leaves it running.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
