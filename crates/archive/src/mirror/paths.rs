//! Files and their URLs: each way exact, and nothing ever leaves the folder.

use std::{
    fs,
    path::{Component, Path, PathBuf},
    time::UNIX_EPOCH,
};

use nenrin_store::Digest;
use nenrin_urls::CanonicalUrl;

use crate::{ArchiveError, Result};

/// Folders inside folders; deeper trees are loops or mistakes.
const DEPTH_MAX: usize = 64;

/// One file of a mirror.
pub(super) struct MirrorFile {
    pub(super) path: PathBuf,
    pub(super) url: CanonicalUrl,
    pub(super) modified_s: i64,
}

/// Visits the regular files below a folder in the order of their paths. Returns what cannot be
/// imported.
pub(super) fn files_below(
    folder: &Path,
    base: &CanonicalUrl,
    visit: &mut dyn FnMut(MirrorFile) -> Result<()>,
) -> Result<Vec<String>> {
    let mut refused = Vec::new();
    // What is still to be visited: the next one is the last.
    let mut waiting = vec![(folder.to_owned(), true, 0)];
    while let Some((path, is_folder, depth)) = waiting.pop() {
        if is_folder {
            waiting.extend(entries_backwards(&path, depth, &mut refused)?);
            continue;
        }
        match url_of(folder, &path, base) {
            Some(url) => {
                let metadata = fs::symlink_metadata(&path).map_err(ArchiveError::reading(&path))?;
                visit(MirrorFile { modified_s: modified_s(&metadata), path, url })?;
            }
            None => {
                refused.push(format!("{}: its name cannot be written as a URL", path.display()))
            }
        }
    }
    refused.sort();
    Ok(refused)
}

/// The files and folders in a folder, the last name first, each with whether it is a folder and at
/// which depth it is.
fn entries_backwards(
    folder: &Path,
    depth: usize,
    refused: &mut Vec<String>,
) -> Result<Vec<(PathBuf, bool, usize)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(ArchiveError::reading(folder))? {
        let entry = entry.map_err(ArchiveError::reading(folder))?;
        let (path, kind) =
            (entry.path(), entry.file_type().map_err(ArchiveError::reading(folder))?);
        if kind.is_file() || (kind.is_dir() && depth < DEPTH_MAX) {
            found.push((path, kind.is_dir(), depth + 1));
        } else {
            let why = match kind.is_dir() {
                true => format!("more than {DEPTH_MAX} folders deep"),
                false => "not a plain file".to_owned(),
            };
            refused.push(format!("{}: {why}", path.display()));
        }
    }
    found.sort_by(|a, b| b.0.cmp(&a.0));
    Ok(found)
}

/// The URLs of the files below a folder.
pub fn urls(folder: &Path, base: &CanonicalUrl) -> Result<Vec<CanonicalUrl>> {
    let mut urls = Vec::new();
    files_below(folder, base, &mut |file| {
        urls.push(file.url);
        Ok(())
    })?;
    Ok(urls)
}

fn modified_s(metadata: &fs::Metadata) -> i64 {
    let since = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| since.as_secs() as i64)
}

/// The URL of a file: the base's folder and the file's path, every byte that has a meaning in URLs
/// escaped, so that the way back is exact.
fn url_of(folder: &Path, path: &Path, base: &CanonicalUrl) -> Option<CanonicalUrl> {
    let relative = path.strip_prefix(folder).ok()?;
    let mut text = format!("{}{}", base.server(), base.directory());
    for (place, part) in relative.components().enumerate() {
        let Component::Normal(part) = part else { return None };
        if place > 0 {
            text.push('/');
        }
        for &byte in part.as_encoded_bytes() {
            match byte {
                b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*'
                | b'+' | b',' | b';' | b'=' | b':' | b'@' => text.push(byte as char),
                byte if byte.is_ascii_alphanumeric() => text.push(byte as char),
                byte => text.push_str(&format!("%{byte:02X}")),
            }
        }
    }
    CanonicalUrl::parse(&text).ok().filter(|url| url.as_str() == text)
}

/// The content type that servers commonly send for a file of this name.
pub fn mime_by_name(path: &Path) -> &'static str {
    let extension = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    match extension.as_deref().unwrap_or_default() {
        "html" | "htm" | "shtml" => "text/html",
        "xhtml" | "xht" => "application/xhtml+xml",
        "css" => "text/css",
        "js" | "mjs" => "text/javascript",
        "json" | "map" => "application/json",
        "xml" | "xsl" => "application/xml",
        "rss" => "application/rss+xml",
        "atom" => "application/atom+xml",
        "svg" => "image/svg+xml",
        "txt" | "md" | "asc" => "text/plain",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "ico" => "image/x-icon",
        "bmp" => "image/bmp",
        "pdf" => "application/pdf",
        "woff" => "font/woff",
        "woff2" => "font/woff2",
        "ttf" => "font/ttf",
        "otf" => "font/otf",
        "mp3" => "audio/mpeg",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        "zip" => "application/zip",
        "gz" | "tgz" => "application/gzip",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}

/// The longest name that file systems take, and what is left of a longer one.
const NAME_MAX_BYTES: usize = 255;
const CUT_NAME_BYTES: usize = 180;
/// A longer ending of a name is part of the name.
const EXTENSION_MAX_BYTES: usize = 16;
/// Longer paths cannot be opened everywhere.
const PATH_MAX_BYTES: usize = 2_000;

/// A file of a mirror, before it is known what else the mirror has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorPath {
    /// The path below the folder. It never leaves it.
    pub path: PathBuf,
    /// Whether the path is another than the URL's: some part of it cannot be the name of a file.
    pub is_mapped: bool,
}

/// Where a page is written: its path below the site's folder; pages of other servers below a
/// folder named after the server.
pub fn path_of(url: &CanonicalUrl, base: Option<&CanonicalUrl>, many_servers: bool) -> MirrorPath {
    let inside = base.is_some_and(|base| {
        base.server() == url.server() && url.path().starts_with(base.directory())
    });
    let (mut path, mut is_mapped) = (PathBuf::new(), false);
    let mut add = |path: &mut PathBuf, name: Result<String, String>| {
        is_mapped |= name.is_err();
        path.push(name.unwrap_or_else(|mapped| mapped));
    };
    let rest = match (inside, base) {
        (true, Some(base)) if !many_servers => &url.path()[base.directory().len()..],
        _ => {
            let server = url.server();
            let host = server.as_str().split_once("://").map_or(server.as_str(), |(_, host)| host);
            add(&mut path, file_name(host, Some(host.to_owned())));
            url.path().strip_prefix('/').unwrap_or_default()
        }
    };
    let (folders, last) = rest.rsplit_once('/').map_or((None, rest), |(f, l)| (Some(f), l));
    for part in folders.into_iter().flat_map(|folders| folders.split('/')) {
        add(&mut path, file_name(part, unescaped(part)));
    }
    let mut name = match last {
        "" => Some("index.html".to_owned()),
        last => unescaped(last),
    };
    if let (Some(name), Some(query)) = (&mut name, url.query()) {
        name.push('?');
        name.push_str(&query.replace('/', "%2F"));
    }
    let escaped = url.query().map_or(last.to_owned(), |query| format!("{last}?{query}"));
    add(&mut path, file_name(&escaped, name));
    if path.as_os_str().len() > PATH_MAX_BYTES {
        path = PathBuf::from("_long").join(with_mark("", url.as_str()));
        is_mapped = true;
    }
    MirrorPath { path, is_mapped }
}

/// A path for a page whose own is taken: by a folder, or by a file that some systems take for the same.
pub(super) fn path_beside(path: &Path, url: &CanonicalUrl, mime: &str) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let mut beside = with_mark(&name, url.as_str());
    if mime.starts_with("text/html") && Path::new(&beside).extension().is_none() {
        beside.push_str(".html");
    }
    path.with_file_name(beside)
}

/// A name for a part of a URL; `Err` has another one, where it cannot be a name. `plain` is the part
/// without its escapes, if that is text.
fn file_name(part: &str, plain: Option<String>) -> Result<String, String> {
    match plain {
        Some(name) if is_plain(&name) => Ok(name),
        // What cannot be written as it is keeps its escapes.
        _ => Err(with_mark(part, part)),
    }
}

fn is_plain(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_device = matches!(stem.as_str(), "con" | "prn" | "aux" | "nul")
        || matches!(
            stem.as_bytes(),
            [b'c', b'o', b'm', b'0'..=b'9'] | [b'l', b'p', b't', b'0'..=b'9']
        );
    let is_folder = name.is_empty() || name == "." || name == "..";
    !is_device
        && !is_folder
        && name.len() <= NAME_MAX_BYTES
        && !name.ends_with(['.', ' '])
        && !name.contains(['/', '\\'])
        && !name.chars().any(char::is_control)
}

/// A name with a hash of the URL, or of the part of it that it is made of, in front of its ending:
/// `a~0f3c9a1b7d.html`.
fn with_mark(name: &str, of: &str) -> String {
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() && ending.len() <= EXTENSION_MAX_BYTES => {
            (stem, Some(ending))
        }
        _ => (name, None),
    };
    let mut end = stem.len().min(CUT_NAME_BYTES);
    while !stem.is_char_boundary(end) {
        end -= 1;
    }
    let clean = |text: &str| -> String {
        let is_good = |c: char| !c.is_control() && !matches!(c, '/' | '\\');
        text.chars().map(|c| if is_good(c) { c } else { '_' }).collect()
    };
    let mark = &Digest::of(of.as_bytes()).to_string()[..10];
    let mut marked = format!("{}~{mark}", clean(&stem[..end]).trim_end_matches(['.', ' ']));
    if let Some(extension) = extension.map(clean).filter(|e| !e.is_empty() && !e.ends_with(' ')) {
        marked.push('.');
        marked.push_str(&extension);
    }
    marked
}

fn unescaped(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = |b: u8| (b as char).to_digit(16);
        match (first, tail) {
            (b'%', [high, low, after @ ..]) if hex(*high).is_some() && hex(*low).is_some() => {
                bytes.push((hex(*high)? * 16 + hex(*low)?) as u8);
                rest = after;
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_name_comes_back() {
        let base = CanonicalUrl::parse("http://e.com/docs/").unwrap();
        for name in [
            "index.html",
            "a b.html",
            "a/b/c.css",
            "100%.html",
            "q?x=1.html",
            "#top.html",
            "日本.html",
            "a%20b.html",
            "x;y=z,w.txt",
            "a\"b<c>.html",
            "~user/[1].html",
        ] {
            let folder = Path::new("/m");
            let url = url_of(folder, &folder.join(name), &base).unwrap_or_else(|| panic!("{name}"));
            let expected = MirrorPath { path: name.into(), is_mapped: false };
            assert_eq!(path_of(&url, Some(&base), false), expected, "{url}");
        }
    }

    #[test]
    fn files_come_in_the_order_of_their_paths() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["a.html", "a/z.html", "a-b/c.html", "b/a/c.html", "b/a.html", "index.html"];
        for name in names {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        let base = CanonicalUrl::parse("http://e.com/").unwrap();
        let mut found = Vec::new();
        let refused = files_below(folder.path(), &base, &mut |file| {
            assert!(file.modified_s > 0);
            found.push(file.path);
            Ok(())
        });
        let mut sorted: Vec<PathBuf> = names.iter().map(|name| folder.path().join(name)).collect();
        sorted.sort();
        assert_eq!(found, sorted);
        assert!(refused.unwrap().is_empty());
    }

    #[test]
    fn nothing_leaves_the_output_folder() {
        let base = CanonicalUrl::parse("http://e.com/").unwrap();
        let long = format!("/{}.html", "a".repeat(300));
        let deep = "/a".repeat(1_010);
        for path in [
            "/%2e%2e%2fpasswd",
            "/a%2Fb",
            "/a%00b",
            "/..%2f..%2fx",
            "/%2e%2e%5cx",
            "/a//b",
            "/%ff.html",
            "/nul",
            "/COM1.txt",
            "/aux/x.html",
            "/a.",
            "/a%20",
            "/x%0Ay",
            &long,
            &deep,
            "/%E6%97%A5%E6%9C%AC%FF.html",
        ] {
            let url = CanonicalUrl::parse(&format!("http://e.com{path}")).unwrap();
            let found = path_of(&url, Some(&base), false);
            assert!(found.is_mapped, "{url}: {}", found.path.display());
            let is_inside = |part: Component<'_>| matches!(part, Component::Normal(_));
            assert!(found.path.components().all(is_inside), "{}", found.path.display());
            let is_good = |part: Component<'_>| part.as_os_str().to_str().is_some_and(is_plain);
            assert!(found.path.components().all(is_good), "{}", found.path.display());
        }
        let other = CanonicalUrl::parse("http://cdn.e.com:81/x/").unwrap();
        let expected = MirrorPath { path: "cdn.e.com:81/x/index.html".into(), is_mapped: false };
        assert_eq!(path_of(&other, Some(&base), false), expected);
    }
}
