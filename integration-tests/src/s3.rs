//! The S3 server of `scripts/with-s3.sh` as a world's store, and a way to it that can be cut.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};

use crate::World;

/// A world whose store is the S3 server that the tests run with, and the server's address.
///
/// # Errors
/// When there is none.
pub fn with_s3() -> Result<(World, String)> {
    with_s3_and(256)
}

/// The same with so many MiB of GPU memory.
///
/// # Errors
/// When there is no server.
pub fn with_s3_and(mib: u64) -> Result<(World, String)> {
    let endpoint = std::env::var("PHOS_TEST_S3_ENDPOINT").context(
        "this test needs an S3 server, and PHOS_TEST_S3_ENDPOINT names none: run it under scripts/with-s3.sh, as \
         `make test` does",
    )?;
    let mut world = World::simulated(1, mib)?;
    world.store = format!("s3://phos-test/{}", world.job);
    for (name, value) in [
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_REGION", "us-east-1"),
    ] {
        world.env.push((name.to_owned(), value.to_owned()));
    }
    Ok((world, endpoint))
}

/// Packs of a world's job that stand on the server.
///
/// # Errors
/// When it does not answer.
pub fn packs_on(endpoint: &str, world: &World) -> Result<usize> {
    let host = endpoint.trim_start_matches("http://");
    let mut server = TcpStream::connect(host)?;
    let prefix = &world.job;
    write!(
        server,
        "GET /phos-test?list-type=2&prefix={prefix}/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    server.read_to_string(&mut answer)?;
    ensure!(answer.contains(" 200 "), "{answer}");
    Ok(answer.matches("/packs/").count())
}

/// A way to a TCP server that can be cut: what is under way is broken off and what is new is refused, or never answered.
pub struct Cable {
    address: SocketAddr,
    state: Arc<Mutex<Lines>>,
}

#[derive(Default)]
struct Lines {
    way: Way,
    open: Vec<TcpStream>,
}

/// What becomes of a new connection.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It leads to the server.
    #[default]
    Whole,
    /// It is refused.
    Cut,
    /// It is taken, and nothing comes back.
    Silent,
}

impl Cable {
    /// To a server's address.
    ///
    /// # Errors
    /// When there is no port.
    pub fn to(server: &str) -> Result<Cable> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let cable = Cable {
            address: listener.local_addr()?,
            state: Arc::default(),
        };
        let (server, state) = (server.to_owned(), Arc::clone(&cable.state));
        // Ends with the test's process.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // One that cannot be served is closed by being dropped.
                let _ = serve(client, &server, &state);
            }
        });
        Ok(cable)
    }

    /// Where it begins, for `AWS_ENDPOINT_URL`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Cuts it or mends it.
    pub fn cut(&self, cut: bool) {
        self.lead(if cut { Way::Cut } else { Way::Whole });
    }

    /// From now on nothing is answered, as where a firewall drops packets. [`Cable::cut`] ends it.
    pub fn silence(&self) {
        self.lead(Way::Silent);
    }

    fn lead(&self, way: Way) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.way = way;
        for line in state.open.drain(..) {
            let _ = line.shutdown(Shutdown::Both);
        }
    }
}

fn serve(client: TcpStream, server: &str, state: &Mutex<Lines>) -> io::Result<()> {
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    match state.way {
        Way::Whole => {}
        Way::Cut => return Ok(()),
        Way::Silent => {
            state.open.push(client);
            return Ok(());
        }
    }
    let upstream = TcpStream::connect(server)?;
    state
        .open
        .extend([client.try_clone()?, upstream.try_clone()?]);
    let pairs = [
        (client.try_clone()?, upstream.try_clone()?),
        (upstream, client),
    ];
    for (mut from, mut to) in pairs {
        std::thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        });
    }
    Ok(())
}
