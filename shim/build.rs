//! Link options of the shared library. It exports what carries `no_mangle`: rustc writes the version script.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Calls between our own functions must not be taken over by another preloaded library.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    // Pointers to our functions are in the hands of libraries that outlive any dlclose.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libphos_shim.so");
}
