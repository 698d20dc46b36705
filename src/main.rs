//! The `nenrin` program.
fn main() {}
