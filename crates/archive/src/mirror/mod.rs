//! Folders of files, in and out.

mod export;
mod import;
mod paths;

pub use export::ExportedMirror;
pub use import::{ImportedMirror, MirrorImportOptions};
pub use paths::{mime_by_name, path_of, urls};
