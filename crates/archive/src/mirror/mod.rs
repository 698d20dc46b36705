//! Folders of files, in and out.

mod export;
mod import;
mod listing;
mod paths;
#[cfg(test)]
mod tests;

pub use export::ExportedMirror;
pub use import::{ImportedMirror, MirrorImportOptions};
pub use paths::{MirrorPath, mime_by_name, path_of, urls};
