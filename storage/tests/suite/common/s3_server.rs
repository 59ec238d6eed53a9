//! The S3 server of scripts/with-s3.sh by plain HTTP, and tests in processes of their own: environment variables belong to
//! a process. Also part of the tests of `phos-s3-admin`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::SystemTime;

/// The S3 server that the tests run with. A test that needs one fails without it, so that nobody takes its silence for
/// success.
pub fn s3_endpoint() -> String {
    std::env::var("PHOS_TEST_S3_ENDPOINT").unwrap_or_else(|_| {
        panic!(
            "this test needs an S3 server, and PHOS_TEST_S3_ENDPOINT names none: run it under scripts/with-s3.sh, as \
             `make test` does"
        )
    })
}

/// Runs an ignored test of this program, by its full name, in a process that has of `AWS_…` only what is given here.
pub fn in_child(child: &str, env: &[(&str, &str)]) -> String {
    let home = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("AWS_") {
            command.env_remove(name);
        }
    }
    let output = command
        .args(["--exact", child, "--ignored", "--nocapture"])
        .env("HOME", home.path())
        .env("AWS_ALLOW_HTTP", "true")
        .envs(env.iter().copied())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{child}: {said}"
    );
    said.into_owned()
}

/// With credentials in the environment and the server as the endpoint.
pub fn with_keys(child: &str, env: &[(&str, &str)]) -> String {
    let endpoint = s3_endpoint();
    let mut all = vec![
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_REGION", "us-east-1"),
    ];
    all.extend(env);
    in_child(child, &all)
}

/// A name that no bucket and no prefix has yet.
pub fn unique(what: &str) -> String {
    let nanos = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_nanos();
    format!("phos-{what}-{nanos}")
}

/// The server, by plain HTTP.
pub struct Server(pub String);

impl Server {
    pub fn there() -> Self {
        Self(s3_endpoint())
    }

    pub async fn put(&self, path: &str, body: &str) {
        let answer = reqwest::Client::new()
            .put(format!("{}/{path}", self.0))
            .body(body.to_owned())
            .send()
            .await
            .unwrap();
        assert!(answer.status().is_success(), "{path}: {answer:?}");
    }

    pub async fn get(&self, path: &str) -> String {
        let answer = reqwest::get(format!("{}/{path}", self.0)).await.unwrap();
        answer.text().await.unwrap()
    }
}

/// A server that answers each request with the same, and says what it was asked.
pub fn answering(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    // Ends with the test's process.
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut head = [0; 4096];
            let _ = client.read(&mut head);
            let _ = client.write_all(answer.as_bytes());
        }
    });
    address
}
