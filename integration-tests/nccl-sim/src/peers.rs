//! How ranks reach each other beside the file that they share, as NCCL's do: each exports memory of its GPU, a thread hands the
//! descriptor to the others over a socket for as long as the communicator lives, and messages go straight into the memory of the
//! receiver. With `NCCL_NVLS_ENABLE=1`, the first rank also makes a multicast object, to which each binds memory of its GPU: what the first
//! rank writes there is written to all of them. With `SIM_NCCL_TCP=1`, ranks also keep a ring of TCP connections, as NCCL does from its start.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

use crate::driver::Driver;
use crate::shared::{MAX_BYTES, RANKS, Shared};

/// Bytes of a rank's memory for messages: a place for each rank that may send one.
const BYTES: usize = RANKS * MAX_BYTES;
/// The variable that asks for connections.
const TCP: &str = "SIM_NCCL_TCP";
/// The variable that asks for a multicast object.
const NVLS: &str = "NCCL_NVLS_ENABLE";

/// What a rank has of the others.
#[derive(Debug)]
pub struct Peers {
    /// Where messages to this rank come to.
    mine: u64,
    /// Where the same of each rank is mapped here.
    theirs: Vec<u64>,
    rank: u32,
    /// Where results of all ranks are written to, and where this rank finds them.
    pub multicast: Option<Multicast>,
    _ring: Option<Ring>,
}

/// Where a multicast object is mapped, and where the memory of this rank that is bound to it.
#[derive(Debug, Clone, Copy)]
pub struct Multicast {
    /// What is written here comes to all ranks.
    pub all: u64,
    /// There.
    pub mine: u64,
}

/// What a rank offers before the others join.
#[derive(Debug)]
pub struct Offer {
    mine: u64,
    /// The handle of the object that this rank has made, if it is the one.
    object: Option<u64>,
    ring: Option<TcpListener>,
}

#[derive(Debug)]
struct Ring {
    _listener: TcpListener,
    _next: TcpStream,
    _before: TcpStream,
}

fn address(name: &str, rank: u32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("phos-nccl-sim-{name}-{rank}"))
}

fn failed(what: &str) -> io::Error {
    io::Error::other(format!("the driver refuses {what}"))
}

impl Offer {
    /// Offers this rank's memory to the others, from now on. The port of its end of the ring, if there is one.
    ///
    /// # Errors
    /// The driver's, and the sockets'.
    pub fn new(driver: &Driver, name: &str, rank: u32, ranks: u32) -> io::Result<(Self, u16)> {
        if ranks == 1 {
            // There is nobody to share anything with.
            return Ok((
                Self {
                    mine: 0,
                    object: None,
                    ring: None,
                },
                0,
            ));
        }
        let (mine, fd) = driver
            .shareable(BYTES)
            .ok_or_else(|| failed("memory that ranks share"))?;
        hand_out(&address(name, rank)?, fd)?;
        let object = match rank {
            0 if is_multicast() => {
                let (object, fd) = driver
                    .multicast(ranks, MAX_BYTES)
                    .ok_or_else(|| failed("a multicast object"))?;
                hand_out(&object_address(name)?, fd)?;
                Some(object)
            }
            _ => None,
        };
        let ring = match std::env::var_os(TCP) {
            Some(_) => Some(TcpListener::bind(("127.0.0.1", 0))?),
            None => None,
        };
        let port = match &ring {
            Some(ring) => ring.local_addr()?.port(),
            None => 0,
        };
        Ok((Self { mine, object, ring }, port))
    }

    /// Takes what the others offer, once all of them do.
    ///
    /// # Errors
    /// As above.
    pub fn taken(self, driver: &Driver, shared: &Shared) -> io::Result<Peers> {
        let map = |rank| {
            if rank == shared.rank {
                return Ok(self.mine);
            }
            let fd = receive(&UnixStream::connect_addr(&address(&shared.name, rank)?)?)?;
            driver
                .of_peer(fd.as_fd(), BYTES)
                .ok_or_else(|| failed("memory of another rank"))
        };
        let theirs = (0..shared.ranks).map(map).collect::<io::Result<_>>()?;
        let multicast = match is_multicast() && shared.ranks > 1 {
            true => Some(take_part(self.object, driver, shared)?),
            false => None,
        };
        let ring = match self.ring {
            Some(listener) => {
                let next = (shared.rank + 1) % shared.ranks;
                let next = TcpStream::connect(("127.0.0.1", shared.port(next)))?;
                let (before, _) = listener.accept()?;
                Some(Ring {
                    _listener: listener,
                    _next: next,
                    _before: before,
                })
            }
            None => None,
        };
        Ok(Peers {
            mine: self.mine,
            theirs,
            rank: shared.rank,
            multicast,
            _ring: ring,
        })
    }
}

impl Peers {
    /// Where a message of this rank to another goes.
    pub fn to(&self, rank: u32) -> Option<u64> {
        let theirs = self.theirs.get(rank as usize)?;
        Some(theirs + (self.rank as usize * MAX_BYTES) as u64)
    }

    /// Where a message of another rank to this one comes.
    pub fn from(&self, rank: u32) -> u64 {
        self.mine + (rank as usize * MAX_BYTES) as u64
    }
}

fn is_multicast() -> bool {
    std::env::var_os(NVLS).is_some_and(|value| value == "1")
}

fn object_address(name: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("phos-nccl-sim-{name}-multicast"))
}

/// Takes part in the object of the ranks, which this one has made or is handed.
fn take_part(object: Option<u64>, driver: &Driver, shared: &Shared) -> io::Result<Multicast> {
    let object = match object {
        Some(object) => object,
        None => {
            let fd = receive(&UnixStream::connect_addr(&object_address(&shared.name)?)?)?;
            driver
                .multicast_of_peer(fd.as_fd())
                .ok_or_else(|| failed("a multicast object of another rank"))?
        }
    };
    let (all, mine) = driver
        .take_part(object, shared.rank, MAX_BYTES)
        .ok_or_else(|| failed("a part in a multicast object"))?;
    Ok(Multicast { all, mine })
}

/// Gives the descriptor to whoever connects, from now on.
fn hand_out(address: &SocketAddr, fd: OwnedFd) -> io::Result<()> {
    let listener = UnixListener::bind_addr(address)?;
    let hand_out = move || {
        for peer in listener.incoming().flatten() {
            // Who left meanwhile does not need it.
            let _ = send(&peer, fd.as_fd());
        }
    };
    // As NCCL's proxies do, it waits there until the process ends.
    let thread = std::thread::Builder::new().name("nccl-sim-proxy".into());
    thread.spawn(hand_out).map(drop)
}

fn send(peer: &UnixStream, fd: BorrowedFd<'_>) -> io::Result<()> {
    let fds = [fd];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&fds));
    rustix::net::sendmsg(
        peer,
        &[IoSlice::new(b"m")],
        &mut control,
        SendFlags::empty(),
    )?;
    Ok(())
}

fn receive(peer: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    rustix::net::recvmsg(peer, &mut [IoSliceMut::new(&mut byte)], &mut control, flags)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut fds) = message
            && let Some(fd) = fds.next()
        {
            return Ok(fd);
        }
    }
    Err(io::Error::other("a rank handed out no descriptor"))
}
