//! Compiles the protobuf types of CRIU's RPC. `protox` is a compiler in Rust: no `protoc` is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto/criu.proto");
    let descriptors = protox::compile(["proto/criu.proto"], ["proto"])?;
    let mut config = prost_build::Config::new();
    config.disable_comments(["."]);
    config.compile_fds(descriptors)?;
    Ok(())
}
