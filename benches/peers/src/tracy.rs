//! Tracy with a server that drains it: the least that the protocol asks of one. It greets, reads and
//! throws away.

use std::hint::black_box;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use tmrun_benches::{pin, pin_others};
use tracy_client::Client;

/// Where a client listens: at the first of these that is free.
const PORTS: std::ops::Range<u16> = 8086..8106;
/// What a server says first (`TracyProtocol.hpp` of Tracy 0.14: shibboleth and protocol version).
const GREETING: [u8; 12] = *b"TracyPrf\x52\0\0\0";
const WELCOME: u8 = 1;
/// Bytes of the client's welcome, and where its process id stands in them.
const WELCOME_LEN: usize = 7 * 8 + 8 + 2 + 12 + 4 + 64 + 1024;
const WELCOME_PID: usize = 6 * 8;

unsafe extern "C" {
    fn tracy_zone_loop(calls: u64);
}

/// A client of this process, and a server on the other core that drains it.
pub struct Drained(Client);

impl Drained {
    pub fn start() -> io::Result<Self> {
        let client = Client::start();
        let mut server = connect()?;
        // The client's own threads belong to the draining side.
        pin_others(1)?;
        std::thread::spawn(move || {
            pin(1);
            let mut buffer = vec![0; 1 << 20];
            while server.read(&mut buffer).is_ok_and(|read| read > 0) {}
        });
        Ok(Self(client))
    }

    /// Zones of C++.
    pub fn zones(&self, calls: u64) {
        // SAFETY: the function has no preconditions but that the client runs, which it does.
        unsafe { tracy_zone_loop(calls) };
    }

    /// Spans of the Rust crate.
    pub fn spans(&self, calls: u64) {
        tracy_span_loop(calls);
    }

    /// The same, with the client at hand.
    pub fn spans_by_client(&self, calls: u64) {
        tracy_client_span_loop(&self.0, calls);
    }
}

#[inline(never)]
#[unsafe(no_mangle)]
fn tracy_span_loop(calls: u64) {
    for i in 0..calls {
        let _span = tracy_client::span!("span");
        black_box(i);
    }
}

#[inline(never)]
#[unsafe(no_mangle)]
fn tracy_client_span_loop(client: &Client, calls: u64) {
    for i in 0..calls {
        let _span = client.clone().span(tracy_client::span_location!("span"), 0);
        black_box(i);
    }
}

/// The client of this process: others may be listening too.
fn connect() -> io::Result<TcpStream> {
    for attempt in 0..100 {
        for port in PORTS {
            if let Ok(stream) = greet(port) {
                return Ok(stream);
            }
        }
        std::thread::sleep(Duration::from_millis(attempt));
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "no client of this process listens"))
}

fn greet(port: u16) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(&GREETING)?;
    let mut status = [0];
    stream.read_exact(&mut status)?;
    if status[0] != WELCOME {
        return Err(io::Error::other(format!("the client answers with status {}", status[0])));
    }
    let mut welcome = [0; WELCOME_LEN];
    stream.read_exact(&mut welcome)?;
    let pid = &welcome[WELCOME_PID..WELCOME_PID + 8];
    if pid != u64::from(std::process::id()).to_le_bytes() {
        return Err(io::Error::other("the client is another process"));
    }
    stream.set_read_timeout(None)?;
    Ok(stream)
}
