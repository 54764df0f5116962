//! Tells the linker where the board's memory is; on any other target the program is empty.

fn main() {
    let target = std::env::var("TARGET").unwrap_or_default();
    if target.starts_with("thumbv7em") {
        let here = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        println!("cargo:rustc-link-arg=-T{here}/memory.ld");
        println!("cargo:rerun-if-changed=memory.ld");
    }
}
