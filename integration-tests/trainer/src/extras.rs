//! What real jobs do besides training: memory that never changes, memory that comes and goes, a second thread with copies
//! of its own, a TCP connection. Whatever holds content is verified.

use std::fmt;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use cudarc::driver::sys::CUstream;

use crate::cuda::{Buffer, Gpu, Pinned, alloc, checksum, cu, free, pattern, stream, synchronize};
use crate::processes::{Child, fork_child};
use crate::rng::mix;

/// Memory does not hold what was written to it.
#[derive(Debug)]
pub(crate) struct VerificationFailed(pub String);

impl fmt::Display for VerificationFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory did not keep its content: {}", self.0)
    }
}

impl std::error::Error for VerificationFailed {}

const MIB: usize = 1 << 20;
/// Not a power of two: chunks at the ends of allocations are partial.
const PIECE: usize = 37 * MIB + 12 * 1024 + 4;

/// How a body of memory is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    StreamOrdered,
}

/// Device memory with known content.
#[derive(Debug)]
pub(crate) struct Content {
    name: &'static str,
    kind: Kind,
    pieces: Vec<(Buffer, u64)>,
    result: Buffer,
}

impl Content {
    /// Allocates and fills `mib` MiB in pieces; nothing for 0.
    pub(crate) fn plain(
        name: &'static str,
        gpu: &Gpu,
        mib: u64,
        seed: u64,
        stream: CUstream,
    ) -> Result<Self> {
        Self::new(name, Kind::Plain, gpu, mib, seed, stream)
    }

    /// The same by cuMemAllocAsync.
    pub(crate) fn stream_ordered(
        name: &'static str,
        gpu: &Gpu,
        mib: u64,
        seed: u64,
        stream: CUstream,
    ) -> Result<Self> {
        Self::new(name, Kind::StreamOrdered, gpu, mib, seed, stream)
    }

    fn new(
        name: &'static str,
        kind: Kind,
        gpu: &Gpu,
        mib: u64,
        seed: u64,
        stream: CUstream,
    ) -> Result<Self> {
        gpu.select()?;
        let mut content = Self {
            name,
            kind,
            pieces: Vec::new(),
            result: alloc(8)?,
        };
        let mut left = usize::try_from(mib)? * MIB;
        while left > 0 {
            let bytes = left.min(PIECE);
            left -= bytes;
            let buffer = match kind {
                Kind::Plain => alloc(bytes)?,
                Kind::StreamOrdered => {
                    let mut ptr = 0;
                    cu!(cuMemAllocAsync(&mut ptr, bytes, stream))?;
                    Buffer { ptr, bytes }
                }
            };
            pattern(gpu, buffer, mix(seed ^ content.pieces.len() as u64), stream)?;
            let sum = checksum(gpu, buffer, content.result, stream)?;
            content.pieces.push((buffer, sum));
        }
        Ok(content)
    }

    pub(crate) fn verify(&self, gpu: &Gpu, stream: CUstream) -> Result<()> {
        gpu.select()?;
        for (index, &(buffer, expected)) in self.pieces.iter().enumerate() {
            let sum = checksum(gpu, buffer, self.result, stream)?;
            if sum != expected {
                let name = self.name;
                let text = format!(
                    "{name}, piece {index} of {} bytes at {:#x}",
                    buffer.bytes, buffer.ptr
                );
                bail!(VerificationFailed(text));
            }
        }
        Ok(())
    }

    pub(crate) fn free(self, gpu: &Gpu, stream: CUstream) -> Result<()> {
        gpu.select()?;
        for (buffer, _) in self.pieces {
            match self.kind {
                Kind::Plain => free(buffer)?,
                Kind::StreamOrdered => cu!(cuMemFreeAsync(buffer.ptr, stream))?,
            }
        }
        free(self.result)
    }
}

/// When in a step [`State`] is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// After all else, as an optimizer does.
    Last,
    /// Before all else.
    First,
    /// Each piece at another time in each step.
    Anywhere,
}

/// Memory that is written anew in each step.
#[derive(Debug)]
pub(crate) struct State {
    content: Content,
    /// Small calls that a step makes as well.
    calls: u64,
    /// After so many of them they are waited for; 0: not before the end of the step.
    waits: u64,
    little: Buffer,
}

impl State {
    pub(crate) fn new(
        gpu: &Gpu,
        mib: u64,
        (calls, waits): (u64, u64),
        stream: CUstream,
    ) -> Result<Self> {
        Ok(Self {
            content: Content::plain("state", gpu, mib, 0, stream)?,
            calls,
            waits,
            little: alloc(4096)?,
        })
    }

    /// What comes before the loss is waited for: twice as many calls as a step makes after that.
    pub(crate) fn forward(&self, gpu: &Gpu, stream: CUstream) -> Result<()> {
        gpu.select()?;
        for call in 0..self.calls * 2 {
            let (ptr, bytes) = (self.little.ptr, self.little.bytes);
            cu!(cuMemsetD8Async(ptr, call as u8, bytes, stream))?;
        }
        Ok(())
    }

    /// Verifies what the step before has left, and writes it anew.
    pub(crate) fn step(
        &mut self,
        gpu: &Gpu,
        step: u64,
        written: Written,
        stream: CUstream,
    ) -> Result<()> {
        gpu.select()?;
        self.content.verify(gpu, stream)?;
        let seed = |piece: usize| mix(step << 8 | piece as u64);
        for call in 0..=self.calls {
            for piece in 0..self.content.pieces.len() {
                let at = match written {
                    Written::Last => self.calls,
                    Written::First => 0,
                    Written::Anywhere => mix(seed(piece)) % (self.calls + 1),
                };
                if at == call {
                    let (buffer, sum) = &mut self.content.pieces[piece];
                    pattern(gpu, *buffer, seed(piece), stream)?;
                    *sum = checksum(gpu, *buffer, self.content.result, stream)?;
                }
            }
            let (ptr, bytes) = (self.little.ptr, self.little.bytes);
            cu!(cuMemsetD8Async(ptr, call as u8, bytes, stream))?;
            if self.waits > 0 && call % self.waits == 0 {
                synchronize(stream)?;
            }
        }
        // Whenever it was written, as many calls come between this wait and that for the loss.
        synchronize(stream)
    }

    pub(crate) fn finish(self, gpu: &Gpu, stream: CUstream) -> Result<()> {
        self.content.verify(gpu, stream)?;
        self.content.free(gpu, stream)?;
        free(self.little)
    }
}

/// Copies a counter to the device, there from place to place, and back, and compares, until it is told to stop.
pub(crate) fn make_noise(stop: &AtomicBool) -> Result<u64> {
    const WORDS: usize = 5000;
    let stream = stream()?;
    let (mut out, mut back) = (Pinned::new(WORDS)?, Pinned::new(WORDS)?);
    let (first, second) = (alloc(WORDS * 4)?, alloc(WORDS * 4)?);
    let mut round = 0u64;
    while !stop.load(Ordering::Relaxed) {
        for (index, word) in out.as_mut().iter_mut().enumerate() {
            *word = mix(round ^ (index as u64) << 32) as u32;
        }
        cu!(cuMemcpyHtoDAsync_v2(
            first.ptr,
            out.ptr.cast(),
            first.bytes,
            stream
        ))?;
        cu!(cuMemcpyDtoDAsync_v2(
            second.ptr,
            first.ptr,
            first.bytes,
            stream
        ))?;
        cu!(cuMemcpyDtoHAsync_v2(
            back.ptr.cast(),
            second.ptr,
            second.bytes,
            stream
        ))?;
        synchronize(stream)?;
        if out.as_mut() != back.as_mut() {
            bail!(VerificationFailed(format!(
                "the noise thread's copies, round {round}"
            )));
        }
        round += 1;
        std::thread::sleep(Duration::from_millis(1));
    }
    free(first)?;
    free(second)?;
    out.free()?;
    back.free()?;
    cu!(cuStreamDestroy_v2(stream))?;
    Ok(round)
}

/// A TCP connection to a helper process that answers each number.
#[derive(Debug)]
pub(crate) struct Link {
    client: Client,
    _helper: Child,
}

impl Link {
    /// Forks the helper: before CUDA is initialised, and before this process has a second thread.
    pub(crate) fn start(address: IpAddr) -> Result<Self> {
        let listener =
            TcpListener::bind((address, 0)).with_context(|| format!("listening on {address}"))?;
        let address = listener.local_addr()?;
        let helper = fork_child(|| serve(&listener))?;
        Ok(Self {
            client: Client {
                address,
                connection: None,
                reconnects: 0,
            },
            _helper: helper,
        })
    }

    pub(crate) fn exchange(&mut self, number: u64) -> Result<()> {
        self.client.exchange(number)
    }

    pub(crate) fn reconnects(&self) -> u64 {
        self.client.reconnects
    }
}

/// The trainer's end. Losing the connection is normal: it is made anew.
#[derive(Debug)]
struct Client {
    address: SocketAddr,
    connection: Option<TcpStream>,
    reconnects: u64,
}

impl Client {
    /// One exchange; on failure, with a new connection, until it works or five seconds have passed.
    fn exchange(&mut self, number: u64) -> Result<()> {
        let mut last = None;
        for attempt in 0..50 {
            if attempt > 0 {
                self.reconnects += 1;
                std::thread::sleep(Duration::from_millis(100));
            }
            match self.try_exchange(number) {
                Ok(()) => return Ok(()),
                Err(error) => {
                    self.connection = None;
                    last = Some(error);
                }
            }
        }
        Err(last.unwrap_or_else(|| anyhow!("no attempt")))
            .context("the TCP helper cannot be reached")
    }

    fn try_exchange(&mut self, number: u64) -> Result<()> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => {
                let connection = TcpStream::connect_timeout(&self.address, Duration::from_secs(1))?;
                connection.set_nodelay(true)?;
                connection.set_read_timeout(Some(Duration::from_secs(2)))?;
                self.connection.insert(connection)
            }
        };
        connection.write_all(&number.to_le_bytes())?;
        let mut answer = [0; 8];
        connection.read_exact(&mut answer)?;
        if u64::from_le_bytes(answer) != mix(number) {
            bail!("the TCP helper answered something else");
        }
        Ok(())
    }
}

/// The helper's life: one connection after another, however each of them ends.
fn serve(listener: &TcpListener) {
    for connection in listener.incoming().flatten() {
        let _ = answer(connection);
    }
}

fn answer(mut connection: TcpStream) -> std::io::Result<()> {
    connection.set_nodelay(true)?;
    loop {
        let mut number = [0; 8];
        connection.read_exact(&mut number)?;
        connection.write_all(&mix(u64::from_le_bytes(number)).to_le_bytes())?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_connection_is_made_anew() -> Result<()> {
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
        let mut client = Client {
            address: listener.local_addr()?,
            connection: None,
            reconnects: 0,
        };
        // A thread instead of a process: the test harness has threads and must not fork.
        std::thread::spawn(move || serve(&listener));
        client.exchange(1)?;
        client.exchange(2)?;
        assert_eq!(client.reconnects, 0);
        // What a restore does to an established connection.
        client
            .connection
            .as_ref()
            .context("connected")?
            .shutdown(std::net::Shutdown::Both)?;
        client.exchange(3)?;
        client.exchange(4)?;
        assert_eq!(client.reconnects, 1);
        Ok(())
    }
}
