//! Folders in and out: `nenrin import mirror` and `nenrin export mirror`.

use std::{
    collections::BTreeSet,
    fs,
    io::IsTerminal,
    path::{Component, Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::Context as _;
use indicatif::ProgressBar;
use nenrin_fetch::http_date;
use nenrin_state::{
    Change, ContentMark, Discovered, Outcome, PageFilter, PageRecord, PageUpdate, Round,
    RoundCounts, RoundEnd, Schedule, Site, State, VersionRow, VisitCommit,
};
use nenrin_store::{NewVersion, Put, VersionId};
use nenrin_urls::CanonicalUrl;
use serde_json::json;

use super::{Context, sites};
use crate::{
    archive::{Access, Archive},
    cli::{ExportMirrorArgs, ImportMirrorArgs},
    clock,
    config::Config,
    exit::{Exit, usage},
    spans::{readable_bytes, readable_date},
    table::{print_json, say},
};

/// Files put before they are made durable and committed.
const BATCH: usize = 500;
/// Pages read from the state at once.
const PORTION: usize = 2_000;
/// Folders inside folders; deeper trees are loops or mistakes.
const DEPTH_MAX: usize = 64;

/// One file of a mirror.
struct MirrorFile {
    path: PathBuf,
    url: CanonicalUrl,
    modified_s: i64,
}

/// What a visit that was taken in came to.
pub(super) struct TakenIn {
    pub(super) files: u64,
    /// What could not be imported, and why.
    pub(super) refused: Vec<String>,
    pub(super) counts: RoundCounts,
}

/// Takes a folder as one visit of the site whose top page is the base.
pub(super) fn take_in(
    archive: &Archive,
    config: &Config,
    (folder, base): (&Path, &CanonicalUrl),
    at_s: i64,
    progress: &ProgressBar,
) -> anyhow::Result<TakenIn> {
    let mut files = 0;
    files_below(folder, base, &mut |_| {
        files += 1;
        Ok(())
    })?;
    if files == 0 {
        return Err(usage(anyhow::anyhow!("{} holds no files to import", folder.display())));
    }
    let site = register(config, &*archive.state, base)?;
    progress.set_length(files);
    let mut importer = Importer::new(archive, site, at_s)?;
    // Read a second time rather than remembered: a mirror may have more files than fit into memory.
    let mut files = 0;
    let refused = files_below(folder, base, &mut |file| {
        files += 1;
        progress.inc(1);
        importer.file(&file)
    })?;
    let counts = importer.finish()?;
    Ok(TakenIn { files, refused, counts })
}

/// `nenrin import mirror`.
pub(crate) fn import(context: &Context, args: &ImportMirrorArgs) -> anyhow::Result<Exit> {
    let base = CanonicalUrl::parse_typed(&args.url).map_err(usage)?;
    anyhow::ensure!(
        args.folder.is_dir(),
        usage(anyhow::anyhow!("{} is not a folder", args.folder.display()))
    );
    let archive = context.open(Access::Write)?;
    let began_ms = clock::now_ms();
    let bar = bar(context, 0);
    let taken = take_in(&archive, &context.config, (&args.folder, &base), args.at, &bar)?;
    bar.finish_and_clear();
    let elapsed_ms = clock::now_ms() - began_ms;
    let TakenIn { files, refused, counts } = taken;
    for path in &refused {
        tracing::warn!("not imported: {path}");
    }
    if context.json {
        print_json(&json!({
            "files": files, "not_imported": refused, "counts": counts, "elapsed_ms": elapsed_ms,
        }))?;
    } else {
        say(format!(
            "{files} files as of {}: {} changed, {} same, {} gone; {} read, {} stored, in {:.1} s",
            readable_date(args.at),
            counts.changed,
            counts.same,
            counts.gone,
            readable_bytes(counts.received_bytes),
            readable_bytes(counts.stored_bytes),
            elapsed_ms as f64 / 1000.0
        ))?;
    }
    Ok(if refused.is_empty() { Exit::Done } else { Exit::Partly })
}

fn bar(context: &Context, length: u64) -> ProgressBar {
    if context.json || !std::io::stderr().is_terminal() {
        ProgressBar::hidden()
    } else {
        ProgressBar::new(length)
    }
}

/// The site whose top page is the base, or a new one that is not collected by itself.
fn register(config: &Config, state: &dyn State, base: &CanonicalUrl) -> anyhow::Result<Site> {
    if let Some(site) = state.sites()?.into_iter().find(|s| s.conditions.tops.contains(base)) {
        return Ok(site);
    }
    let mut conditions = sites::default_conditions(vec![base.clone()], config);
    conditions.schedule = Schedule::Manual;
    let name = sites::free_name(state, &conditions)?;
    Ok(state.add_site(&name, &conditions, clock::now_s())?)
}

/// Visits the regular files below a folder in the order of their paths. Returns what cannot be
/// imported.
fn files_below(
    folder: &Path,
    base: &CanonicalUrl,
    visit: &mut dyn FnMut(MirrorFile) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<String>> {
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
                let metadata = fs::symlink_metadata(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                visit(MirrorFile { modified_s: modified_s(&metadata), path, url })?;
            }
            None => refused.push(format!("{}: its name makes no URL", path.display())),
        }
    }
    refused.sort();
    Ok(refused)
}

/// The files and folders in a folder, the last name first, each with whether it is a folder and how
/// deep it lies.
fn entries_backwards(
    folder: &Path,
    depth: usize,
    refused: &mut Vec<String>,
) -> anyhow::Result<Vec<(PathBuf, bool, usize)>> {
    let unreadable = || format!("cannot read {}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_file() || (kind.is_dir() && depth < DEPTH_MAX) {
            found.push((path, kind.is_dir(), depth + 1));
        } else {
            refused.push(format!("{}: not a plain file", path.display()));
        }
    }
    found.sort_by(|a, b| b.0.cmp(&a.0));
    Ok(found)
}

/// The URLs of the files below a folder.
pub(super) fn urls(folder: &Path, base: &CanonicalUrl) -> anyhow::Result<Vec<CanonicalUrl>> {
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

/// Takes the files of one visit in.
struct Importer<'a> {
    archive: &'a Archive,
    site: Site,
    round: Round,
    at_s: i64,
    seen: BTreeSet<CanonicalUrl>,
    pending: Vec<Pending>,
    counts: RoundCounts,
}

struct Pending {
    url: CanonicalUrl,
    /// `None` until the page is made known.
    page: Option<PageRecord>,
    outcome: Outcome,
    bytes: u64,
    mark: Option<ContentMark>,
    modified_s: i64,
    version: Option<(Put, String)>,
}

impl<'a> Importer<'a> {
    fn new(archive: &'a Archive, site: Site, at_s: i64) -> anyhow::Result<Self> {
        let round = archive.state.begin_round(site.id, at_s)?;
        Ok(Self {
            archive,
            site,
            round,
            at_s,
            seen: BTreeSet::new(),
            pending: Vec::new(),
            counts: RoundCounts::default(),
        })
    }

    fn file(&mut self, file: &MirrorFile) -> anyhow::Result<()> {
        let body =
            fs::read(&file.path).with_context(|| format!("cannot read {}", file.path.display()))?;
        let page = self.page(&file.url)?;
        let digest = blake3::hash(&body);
        let mut mark = [0; 16];
        mark.copy_from_slice(&digest.as_bytes()[..16]);
        let mark = ContentMark(mark);
        let last = page.as_ref().filter(|page| page.outcome != Some(Outcome::Gone));
        let same = last.is_some_and(|page| page.version.is_some() && page.mark == Some(mark));
        let version = if same {
            None
        } else {
            let mime = mime_by_name(&file.path);
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\nContent-Length: {}\r\nLast-Modified: {}\r\n\r\n",
                body.len(),
                http_date::format(file.modified_s)
            );
            let put = self.archive.store.put(&NewVersion {
                url: &file.url,
                group: self.site.id.0,
                visited_at_s: self.at_s,
                status: 200,
                protocol: "file",
                tls: None,
                server_address: None,
                request_head: b"",
                response_head: head.as_bytes(),
                body: &body,
                truncated: None,
                previous: page.as_ref().and_then(|page| page.version).map(VersionId),
            })?;
            Some((put, mime.to_owned()))
        };
        self.pending.push(Pending {
            outcome: if same { Outcome::Same } else { Outcome::Changed },
            url: file.url.clone(),
            page,
            bytes: body.len() as u64,
            mark: Some(mark),
            modified_s: file.modified_s,
            version,
        });
        if self.pending.len() >= BATCH { self.commit() } else { Ok(()) }
    }

    /// The page of a URL, if it is known and this visit is not older than its last.
    fn page(&self, url: &CanonicalUrl) -> anyhow::Result<Option<PageRecord>> {
        let page = self.archive.state.page(url)?;
        let visited_s = page.as_ref().and_then(|page| page.visited_s);
        match visited_s.is_some_and(|last_s| last_s > self.at_s) {
            true => Err(usage(anyhow::anyhow!(
                "{url} was visited after {}; mirrors are imported in the order of their dates",
                readable_date(self.at_s)
            ))),
            false => Ok(page),
        }
    }

    fn commit(&mut self) -> anyhow::Result<()> {
        self.archive.store.sync()?;
        let pending = std::mem::take(&mut self.pending);
        self.seen.extend(pending.iter().map(|file| file.url.clone()));
        let changes: Vec<Change> = pending.into_iter().map(|file| self.visit(file)).collect();
        self.archive.state.commit(&changes)?;
        Ok(())
    }

    fn visit(&mut self, pending: Pending) -> Change {
        let found = Discovered { url: pending.url, depth: 2, hops: 0, due_s: None };
        let stored_bytes = pending.version.as_ref().map_or(0, |(put, _)| put.new_bytes);
        self.counts.count(pending.outcome);
        self.counts.received_bytes += pending.bytes;
        self.counts.stored_bytes += stored_bytes;
        let gone = pending.outcome == Outcome::Gone;
        Change::Visit(Box::new(VisitCommit {
            round: Some(self.round.id),
            status: if gone { 404 } else { 200 },
            received_bytes: pending.bytes,
            stored_bytes,
            version: pending.version.map(|(put, mime)| VersionRow {
                at_s: self.at_s,
                version: put.id.0,
                status: 200,
                mime,
                bytes: pending.bytes,
                changed_permille: None,
            }),
            update: PageUpdate {
                last_modified: (!gone).then(|| http_date::format(pending.modified_s)),
                mark: pending.mark,
                bytes: pending.bytes,
                due_s: pending.page.as_ref().and_then(|page| page.due_s),
                history: pending.page.map(|page| page.history).unwrap_or_default(),
                ..PageUpdate::default()
            },
            ..VisitCommit::new(found, self.site.id, self.at_s, pending.outcome)
        }))
    }

    /// A mirror is the whole site: pages that it does not have any more are gone.
    fn finish(mut self) -> anyhow::Result<RoundCounts> {
        self.commit()?;
        let mut after = None;
        loop {
            let filter = PageFilter { site: Some(self.site.id), after, limit: PORTION };
            let portion = self.archive.state.pages(filter)?;
            let Some(last) = portion.last() else { break };
            after = Some(last.id);
            for page in portion {
                let there = page.version.is_some() && page.outcome != Some(Outcome::Gone);
                if there && !self.seen.contains(&page.url) {
                    let mark = page.mark;
                    self.pending.push(Pending {
                        url: page.url.clone(),
                        page: Some(page),
                        outcome: Outcome::Gone,
                        bytes: 0,
                        mark,
                        modified_s: 0,
                        version: None,
                    });
                }
            }
            self.commit()?;
        }
        let end =
            RoundEnd { round: self.round.id, site: self.site.id, at_s: self.at_s, skips: None };
        self.archive.state.commit(&[Change::RoundEnd(end)])?;
        Ok(self.counts)
    }
}

/// The content type that servers commonly send for a file of this name.
pub(super) fn mime_by_name(path: &Path) -> &'static str {
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

/// What was written out.
#[derive(Default)]
pub(super) struct WrittenOut {
    files: u64,
    bytes: u64,
    /// URLs that make no file name.
    pub(super) skipped: Vec<String>,
}

/// Writes sites as of a date as files below a folder; several with a folder for each server.
pub(super) fn write_out(
    archive: &Archive,
    sites: &[Site],
    at_s: i64,
    (output, many_servers): (&Path, bool),
    progress: &ProgressBar,
) -> anyhow::Result<WrittenOut> {
    fs::create_dir_all(output).with_context(|| format!("cannot create {}", output.display()))?;
    let mut written = WrittenOut::default();
    for site in sites {
        let base = site.conditions.tops.first();
        let mut after = None;
        loop {
            let portion = archive.state.site_as_of(site.id, at_s, after, PORTION)?;
            let Some(last) = portion.last() else { break };
            after = Some(last.0);
            for (_, url, row) in &portion {
                progress.inc(1);
                if !(200..300).contains(&row.status) {
                    continue;
                }
                let Some(relative) = path_of(url, base, many_servers) else {
                    written.skipped.push(url.to_string());
                    continue;
                };
                let version = archive.store.read(VersionId(row.version))?;
                let target = output.join(relative);
                write_file(&target, &version.body, last_modified(&version.head.response_head))?;
                written.files += 1;
                written.bytes += version.body.len() as u64;
            }
        }
    }
    Ok(written)
}

/// `nenrin export mirror`.
pub(crate) fn export(context: &Context, args: &ExportMirrorArgs) -> anyhow::Result<Exit> {
    let archive = context.open(Access::Read)?;
    let sites = match &args.site {
        Some(name) => vec![sites::find(&*archive.state, name)?],
        None => archive.state.sites()?,
    };
    let many_servers = args.site.is_none() && sites.len() > 1;
    let bar = bar(context, sites.iter().map(|site| site.counts.pages).sum());
    let written = write_out(&archive, &sites, args.at, (&args.output, many_servers), &bar)?;
    bar.finish_and_clear();
    let WrittenOut { files, bytes, skipped } = written;
    if context.json {
        print_json(&json!({"files": files, "bytes": bytes, "not_exported": skipped}))?;
    } else {
        say(format!(
            "{files} files, {}, as of {} in {}",
            readable_bytes(bytes),
            readable_date(args.at),
            args.output.display()
        ))?;
        for url in &skipped {
            say(format!("not exported, because its URL makes no file name: {url}"))?;
        }
    }
    Ok(if skipped.is_empty() { Exit::Done } else { Exit::Partly })
}

fn last_modified(head: &[u8]) -> Option<i64> {
    let (_, value) = nenrin_fetch::header_fields(head)
        .find(|(name, _)| name.eq_ignore_ascii_case(b"last-modified"))?;
    http_date::parse(std::str::from_utf8(&value).ok()?)
}

/// Where a page is written: its path below the site's folder; pages of other servers below a
/// folder named after the server. Nothing ever leaves the output folder.
pub(super) fn path_of(
    url: &CanonicalUrl,
    base: Option<&CanonicalUrl>,
    many_servers: bool,
) -> Option<PathBuf> {
    let inside = base.is_some_and(|base| {
        base.server() == url.server() && url.path().starts_with(base.directory())
    });
    let mut path = PathBuf::new();
    let rest = match (inside, base) {
        (true, Some(base)) if !many_servers => &url.path()[base.directory().len()..],
        _ => {
            path.push(url.server().as_str().split_once("://")?.1.replace(['/', '\\'], "_"));
            &url.path()[1..]
        }
    };
    let name_count = rest.split('/').count();
    for (place, part) in rest.split('/').enumerate() {
        let last = place + 1 == name_count;
        let mut name = unescaped(part)?;
        if last && name.is_empty() {
            name = "index.html".into();
        }
        if let (true, Some(query)) = (last, url.query()) {
            name = format!("{name}?{}", query.replace('/', "%2F"));
        }
        let plain = !name.is_empty() && name != "." && name != ".." && name.len() <= 255;
        if !plain || name.contains(['/', '\0']) {
            return None;
        }
        path.push(name);
    }
    Some(path)
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

fn write_file(target: &Path, body: &[u8], modified_s: Option<i64>) -> anyhow::Result<()> {
    let context = || format!("cannot write {}", target.display());
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).with_context(context)?;
    }
    fs::write(target, body).with_context(context)?;
    if let Some(at_s) = modified_s.and_then(|at_s| u64::try_from(at_s).ok()) {
        let at: SystemTime = UNIX_EPOCH + Duration::from_secs(at_s);
        let file = fs::File::options().write(true).open(target).with_context(context)?;
        file.set_modified(at).with_context(context)?;
    }
    Ok(())
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
            assert_eq!(path_of(&url, Some(&base), false), Some(PathBuf::from(name)), "{url}");
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
        for path in ["/%2e%2e%2fpasswd", "/a%2Fb", "/a%00b", "/..%2f..%2fx"] {
            let url = CanonicalUrl::parse(&format!("http://e.com{path}")).unwrap();
            assert_eq!(path_of(&url, Some(&base), false), None, "{url}");
        }
        let other = CanonicalUrl::parse("http://cdn.e.com:81/x/").unwrap();
        assert_eq!(path_of(&other, Some(&base), false), Some("cdn.e.com:81/x/index.html".into()));
    }
}
