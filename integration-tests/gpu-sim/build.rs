//! Link arguments of the simulated `libcuda.so.1`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Loaded by name through a symlink, bound to itself, and never unloaded: its threads live as long as the process.
    for arg in [
        "-Wl,-soname,libcuda.so.1",
        "-Wl,-Bsymbolic-functions",
        "-Wl,-z,nodelete",
    ] {
        println!("cargo:rustc-cdylib-link-arg={arg}");
    }
}
