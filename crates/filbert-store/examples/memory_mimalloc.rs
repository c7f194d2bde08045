//! The example `memory` with mimalloc.

#[path = "memory.rs"]
#[allow(dead_code, reason = "the other example's main")]
mod memory;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    memory::measure("mimalloc");
}
