//! Compiles the loop of C++ zones against the Tracy that tracy-client-sys brings, so that both are
//! the same Tracy.

fn main() {
    println!("cargo:rerun-if-changed=src/tracy.cpp");
    #[cfg(feature = "tracy")]
    tracy();
}

#[cfg(feature = "tracy")]
fn tracy() {
    // As tracy-client-sys compiles it with the features that we ask for.
    const DEFINES: [&str; 11] = [
        "TRACY_ENABLE",
        "TRACY_ONLY_LOCALHOST",
        "TRACY_NO_SYSTEM_TRACING",
        "TRACY_NO_CONTEXT_SWITCH",
        "TRACY_NO_WAIT_STACKS",
        "TRACY_NO_SAMPLING",
        "TRACY_NO_CODE_TRANSFER",
        "TRACY_NO_BROADCAST",
        "TRACY_NO_CALLSTACK_INLINES",
        "TRACY_NO_VERIFY",
        "TRACY_NO_CRASH_HANDLER",
    ];
    let mut build = cc::Build::new();
    for define in DEFINES {
        build.define(define, None);
    }
    build.cpp(true).std("c++11").include(sources()).file("src/tracy.cpp").compile("tracy-loop");
}

/// Where the sources of tracy-client-sys lie.
#[cfg(feature = "tracy")]
fn sources() -> std::path::PathBuf {
    let cargo = std::env::var("CARGO").expect("cargo sets it");
    // Of other platforms' dependencies not even the sources are here.
    let target = std::env::var("TARGET").expect("cargo sets it");
    let metadata = std::process::Command::new(cargo)
        .args(["metadata", "--format-version=1", "--locked", "--offline", "--features=tracy"])
        .arg(format!("--filter-platform={target}"))
        .stderr(std::process::Stdio::inherit())
        .output()
        .expect("cargo can be run");
    let text = String::from_utf8(metadata.stdout).expect("cargo writes UTF-8");
    // The one path that ends so: not worth a JSON parser.
    let manifest = text
        .split('"')
        .find(|part| part.contains("tracy-client-sys-") && part.ends_with("Cargo.toml"))
        .expect("tracy-client-sys is among the dependencies");
    std::path::Path::new(manifest).with_file_name("tracy")
}
