//! The log-ins of sites: cookies and secret headers, sealed on disk, sent only where they belong, and
//! never recorded.

mod sealed;
mod window;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nenrin_crawl::{Command, FetchOrder, Purpose, Trouble, logs_out};
use nenrin_fetch::{CookieJar, Exchange, redacted};
use nenrin_lang::{Reason, serialize_reason};
use nenrin_state::{Site, SiteHeader, SiteId, State, StateError, VisitFilter, VisitRow};
use nenrin_urls::CanonicalUrl;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;

pub use self::sealed::LoginKey;
use self::sealed::SealingKey;
pub use self::window::log_in_window;
use crate::{Archive, ArchiveError, Result, retry::retried, spans::readable_date};

const FOLDER: &str = "logins";
/// No file of a person's secrets is longer.
const GIVEN_MAX_BYTES: u64 = 4 << 20;
/// How many of a paused site's last visits may have been under way when its log-in ended.
const LAST_VISITS: usize = 64;

/// Header fields that are never recorded of a log-in, shown or exported.
const SECRET_FIELDS: [&str; 4] = ["cookie", "set-cookie", "authorization", "proxy-authorization"];

/// A message head without cookies and passwords.
pub fn redact(head: &[u8]) -> Cow<'_, [u8]> {
    redacted(head, &SECRET_FIELDS)
}

/// The log-in of a site.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    jar: CookieJar,
    /// Sent to `servers` alone.
    headers: Vec<SiteHeader>,
    /// The servers of the site's top pages when the headers were given: a redirect cannot add one.
    servers: Vec<String>,
}

/// What a person gives: files, so that no secret is part of a command.
#[derive(Debug, Default)]
pub struct GivenLogin<'a> {
    /// A `cookies.txt`; `none` forgets the cookies.
    pub cookies: Option<&'a str>,
    /// What a `cookies.txt` would say, in place of one.
    pub cookie_lines: Option<&'a str>,
    /// A file with a header in each line, or `Basic: USER:PASSWORD`; `none` forgets the headers.
    pub headers: Option<&'a str>,
    /// Where visitors are led who are not logged in; `none` for no such page.
    pub page: Option<&'a str>,
}

/// Cookies that an answer sets. They are taken in once the answer is judged.
#[derive(Debug)]
pub struct NewCookies {
    site: SiteId,
    url: CanonicalUrl,
    lines: Vec<String>,
    now_s: i64,
}

/// The log-ins of an archive's sites. Clones share them.
#[derive(Clone)]
pub struct Logins(Arc<Mutex<Inner>>);

struct Inner {
    folder: PathBuf,
    key: Option<SealingKey>,
    known: BTreeMap<SiteId, Known>,
}

enum Known {
    Open {
        login: Login,
        is_saved: bool,
    },
    /// It cannot be used, for this reason.
    Closed {
        reason: Reason,
        is_reported: bool,
    },
}

impl Logins {
    /// Reads the log-ins of an archive. One that cannot be read closes its site: its pages are not
    /// visited without it.
    pub fn open(folder: &Path, key: &LoginKey) -> Self {
        let mut inner = Inner { folder: folder.join(FOLDER), key: None, known: BTreeMap::new() };
        let opened = key.open(folder, false);
        for site in sites_in(&inner.folder) {
            let login = opened
                .as_ref()
                .map_err(ToString::to_string)
                .and_then(|key| inner.read(key, site).map_err(|error| error.to_string()));
            let known = match login {
                Ok(login) => Known::Open { login, is_saved: true },
                Err(why) => {
                    let reason = Reason::LoginUnreadable(why);
                    Known::Closed { reason, is_reported: false }
                }
            };
            inner.known.insert(site, known);
        }
        inner.key = opened.ok();
        Self(Arc::new(Mutex::new(inner)))
    }

    /// Sites that were resumed after their log-in had ended are tried again with what is stored of it.
    pub fn resume(&self, sites: &[Site]) {
        let mut inner = self.inner();
        for site in sites.iter().filter(|site| !site.paused) {
            let is_ended =
                matches!(inner.known.get(&site.id), Some(Known::Closed { is_reported: true, .. }));
            let read = inner.key.as_ref().filter(|_| is_ended).map(|key| inner.read(key, site.id));
            if let Some(Ok(login)) = read {
                inner.known.insert(site.id, Known::Open { login, is_saved: true });
            }
        }
    }

    /// What a request sends in addition, and marks it as one with a log-in.
    ///
    /// # Errors
    /// Why it must not be made.
    pub fn attach(
        &self,
        order: &mut FetchOrder,
        now_s: i64,
    ) -> std::result::Result<Vec<(String, String)>, Trouble> {
        let refused = |reason| Err(Trouble { reason, of_server: false, refused: true });
        let inner = self.inner();
        let asks = !matches!(order.purpose, Purpose::Robots | Purpose::LoginPage);
        let known = order.site.filter(|_| asks).and_then(|site| inner.known.get(&site));
        let login = match known {
            None => return Ok(Vec::new()),
            Some(Known::Closed { reason, .. }) => return refused(reason.clone()),
            Some(Known::Open { .. }) if logs_out(&order.url) => return refused(Reason::LogsOut),
            Some(Known::Open { login, .. }) => login,
        };
        order.with_login = true;
        Ok(login.headers_for(&order.url, now_s))
    }

    /// Takes the secrets out of what was exchanged, and returns the cookies that it sets.
    pub fn strip(
        &self,
        order: &FetchOrder,
        exchange: &mut Exchange,
        now_s: i64,
    ) -> Option<Box<NewCookies>> {
        // A header with a secret may also be a condition of the site.
        if let Cow::Owned(clean) = redact(&exchange.request_head) {
            exchange.request_head = clean;
        }
        let site = order.site.filter(|_| order.with_login)?;
        let lines: Vec<String> =
            exchange.header_values("set-cookie").map(Cow::into_owned).collect();
        if let Cow::Owned(clean) = redact(&exchange.response_head) {
            exchange.response_head = clean;
        }
        let url = order.url.clone();
        (!lines.is_empty()).then(|| Box::new(NewCookies { site, url, lines, now_s }))
    }

    /// An answer was judged: its cookies are taken in, unless it ended the log-in. Then the site
    /// pauses; returns what happened.
    ///
    /// # Errors
    /// What the state says.
    pub fn settle(
        &self,
        cookies: Option<Box<NewCookies>>,
        commands: &[Command],
        state: &dyn State,
    ) -> std::result::Result<Option<LoggedOut>, StateError> {
        let mut inner = self.inner();
        let mut ended = None;
        for command in commands {
            let Command::LoggedOut { site, url, reason } = command else { continue };
            // Other answers of the same time say the same.
            let is_reported =
                matches!(inner.known.get(site), Some(Known::Closed { is_reported: true, .. }));
            if !is_reported {
                let closed = Known::Closed { reason: reason.clone(), is_reported: true };
                inner.known.insert(*site, closed);
                tracing::warn!(%url, "the site pauses: {reason}");
                retried(|| state.pause_site(*site, true))?;
                ended = Some((url, reason));
            }
        }
        if let Some(NewCookies { site, url, lines, now_s }) = cookies.map(|cookies| *cookies)
            && let Some(Known::Open { login, is_saved }) = inner.known.get_mut(&site)
        {
            for line in lines {
                *is_saved &= !login.jar.set(&url, &line, now_s);
            }
        }
        Ok(ended.map(|(url, reason)| LoggedOut {
            at_s: None,
            url: url.clone(),
            reason: reason.clone(),
        }))
    }

    /// Seals what answers have changed. A log-in that has ended stays as it was before.
    pub fn save(&self) {
        let mut inner = self.inner();
        let Inner { folder, key: Some(key), known } = &mut *inner else { return };
        for (site, known) in known {
            let Known::Open { login, is_saved: is_saved @ false } = known else { continue };
            match write(key, folder, *site, login) {
                Ok(()) => *is_saved = true,
                Err(error) => tracing::warn!(site = site.0, "the log-in was not saved: {error}"),
            }
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn read(&self, key: &SealingKey, site: SiteId) -> Result<Login> {
        let bytes = key.read(&file_of(&self.folder, site), &about(site))?;
        let wrong = |_| ArchiveError::Input("it is of a newer version of the program".to_owned());
        serde_json::from_slice(&bytes).map_err(wrong)
    }
}

impl Login {
    fn headers_for(&self, url: &CanonicalUrl, now_s: i64) -> Vec<(String, String)> {
        let own = self.servers.contains(&url.server().to_string());
        let headers = self.headers.iter().filter(|_| own);
        let cookies = self.jar.header_for(url, now_s).map(|cookies| ("Cookie".to_owned(), cookies));
        headers.map(|header| (header.name.clone(), header.value.clone())).chain(cookies).collect()
    }
}

fn file_of(folder: &Path, site: SiteId) -> PathBuf {
    folder.join(site.0.to_string())
}

fn about(site: SiteId) -> String {
    format!("site {}", site.0)
}

fn write(key: &SealingKey, folder: &Path, site: SiteId, login: &Login) -> Result<()> {
    let secret = serde_json::to_vec(login).unwrap_or_default();
    key.write(&file_of(folder, site), &about(site), &secret)
}

fn sites_in(folder: &Path) -> Vec<SiteId> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.file_name().to_str()?.parse().ok().map(SiteId)).collect()
}

/// Sets a site's log-in from what a person gave. Returns whether there was anything to set.
///
/// # Errors
/// A sentence that names the file and the line; never what is in it.
pub(crate) fn set(
    folder: &Path,
    key: &LoginKey,
    site: &Site,
    given: &GivenLogin<'_>,
) -> Result<bool> {
    if given.cookies.is_none() && given.headers.is_none() && given.cookie_lines.is_none() {
        return Ok(false);
    }
    let logins = folder.join(FOLDER);
    let file = file_of(&logins, site.id);
    let is_removed = given.cookie_lines.is_none()
        && [given.cookies, given.headers].iter().flatten().all(|given| *given == "none");
    let is_there = file.exists();
    let key = key.open(folder, !is_removed);
    let mut login = match (&key, is_there) {
        // What cannot be opened any more can still be replaced.
        (Ok(key), true) => key.read(&file, &about(site.id)).ok(),
        _ => None,
    }
    .and_then(|bytes| serde_json::from_slice::<Login>(&bytes).ok())
    .unwrap_or_default();
    match given.cookies {
        None => {}
        Some("none") => login.jar = CookieJar::default(),
        Some(path) => login.jar = read_given(path, CookieJar::import)?,
    }
    if let Some(lines) = given.cookie_lines {
        let nobody = |why| ArchiveError::Input(format!("nobody has logged in: {why}"));
        login.jar = CookieJar::import(lines).map_err(nobody)?;
    }
    match given.headers {
        None => {}
        Some("none") => login.headers.clear(),
        Some(path) => login.headers = read_given(path, read_headers)?,
    }
    login.servers = site.conditions.tops.iter().map(|top| top.server().to_string()).collect();
    if login.jar.is_empty() && login.headers.is_empty() {
        return match std::fs::remove_file(&file) {
            Err(error) if is_there => Err(ArchiveError::writing(&file)(error)),
            _ => Ok(true),
        };
    }
    std::fs::create_dir_all(&logins).map_err(ArchiveError::writing(&logins))?;
    write(&key?, &logins, site.id, &login)?;
    Ok(true)
}

fn read_given<T>(
    path: &str,
    read: impl FnOnce(&str) -> std::result::Result<T, String>,
) -> Result<T> {
    let file = Path::new(path);
    let length = std::fs::metadata(file).map_err(ArchiveError::reading(file))?.len();
    if length > GIVEN_MAX_BYTES {
        return Err(ArchiveError::Input(format!("{path} is larger than 4 MB")));
    }
    let text = std::fs::read(file).map_err(ArchiveError::reading(file))?;
    let text = String::from_utf8(text)
        .map_err(|_| ArchiveError::Input(format!("{path} is not text in UTF-8")))?;
    read(&text).map_err(|why| ArchiveError::Input(format!("{path}: {why}")))
}

fn read_headers(text: &str) -> std::result::Result<Vec<SiteHeader>, String> {
    let mut headers = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = || {
            format!(
                "line {number} is not a header; write `Authorization: Bearer …`, or \
                 `Basic: USER:PASSWORD` for HTTP Basic"
            )
        };
        let (name, value) = line.split_once(':').ok_or_else(wrong)?;
        let line = match name.trim().eq_ignore_ascii_case("basic") {
            true if !value.contains(':') => return Err(wrong()),
            true => format!("Authorization: Basic {}", STANDARD.encode(value.trim())),
            false => line.to_owned(),
        };
        headers.push(SiteHeader::try_from(line).map_err(|_| wrong())?);
    }
    match headers.len() {
        0 => Err("there is no header in it".to_owned()),
        count if count > SiteHeader::MAX => Err("there are more than 20 headers in it".to_owned()),
        _ => Ok(headers),
    }
}

impl Archive {
    /// Sets a site's log-in from what a person gave. A site that paused because its log-in had ended
    /// is collected again.
    ///
    /// # Errors
    /// A sentence that names the file and the line; never what is in it.
    pub fn set_login(
        &self,
        key: &LoginKey,
        site: &mut Site,
        given: &GivenLogin<'_>,
        now_s: i64,
    ) -> Result<()> {
        if let Some(page) = given.page {
            let is_page = page != "none";
            site.conditions.login_page =
                is_page.then(|| CanonicalUrl::parse_typed(page)).transpose()?;
            self.state().set_site(site.id, &site.conditions, now_s)?;
        }
        let is_set = set(self.folder(), key, site, given)?;
        if is_set && logged_out_of(&**self.state(), site)?.is_some() {
            self.state().pause_site(site.id, false)?;
            site.paused = false;
        }
        Ok(())
    }

    /// The same for programs.
    ///
    /// # Errors
    /// What the state says.
    pub fn login_json(&self, site: &Site) -> Result<serde_json::Value> {
        let out = logged_out_of(&**self.state(), site)?;
        Ok(json!({"is_set": has(self.folder(), site.id), "logged_out": out}))
    }

    /// What can be said of a site's log-in without showing anything of it: a line each.
    ///
    /// # Errors
    /// What the state says.
    pub fn login_lines(&self, site: &Site) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        if has(self.folder(), site.id) {
            lines.push("  log-in     set; it is stored encrypted".to_owned());
        }
        if let Some(out) = logged_out_of(&**self.state(), site)? {
            lines.push(format!("  paused     {out}"));
            lines.push(format!(
                "             `nenrin site set {} --cookies FILE` sets a new log-in and goes on",
                site.name
            ));
        }
        Ok(lines)
    }
}

/// Forgets the log-in of a site.
pub(crate) fn forget(folder: &Path, site: SiteId) {
    let file = file_of(&folder.join(FOLDER), site);
    if file.exists()
        && let Err(error) = std::fs::remove_file(&file)
    {
        tracing::warn!("the log-in in {} was not removed: {error}", file.display());
    }
}

/// Whether a site has a log-in.
pub(crate) fn has(folder: &Path, site: SiteId) -> bool {
    file_of(&folder.join(FOLDER), site).exists()
}

/// The visit that showed that a site's log-in has ended; the site is paused because of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoggedOut {
    /// When, in seconds since the epoch; none for now.
    pub at_s: Option<i64>,
    /// The page.
    pub url: CanonicalUrl,
    /// How the visit showed it.
    #[serde(flatten, serialize_with = "of_reason")]
    pub reason: Reason,
}

fn of_reason<S: Serializer>(
    reason: &Reason,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serialize_reason(&Some(reason.clone()), serializer)
}

impl std::error::Error for LoggedOut {}

impl std::fmt::Display for LoggedOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.url, self.reason)?;
        self.at_s.map_or(Ok(()), |at_s| write!(f, " ({})", readable_date(at_s)))
    }
}

/// Why a site is paused, if it is because its log-in has ended.
pub fn logged_out_of(
    state: &dyn State,
    site: &Site,
) -> std::result::Result<Option<LoggedOut>, StateError> {
    if !site.paused || site.removed.is_some() {
        return Ok(None);
    }
    let filter = VisitFilter { site: Some(site.id), limit: LAST_VISITS, ..VisitFilter::default() };
    let of_visit = |visit: VisitRow| {
        let reason = visit.reason.filter(Reason::is_of_login)?;
        Some(LoggedOut { at_s: Some(visit.at_s), url: visit.url, reason })
    };
    Ok(state.visits(filter)?.into_iter().find_map(of_visit))
}

#[cfg(test)]
mod tests {
    use nenrin_crawl::Ticket;
    use nenrin_fetch::AddressPolicy;
    use nenrin_state::SiteConditions;

    use super::*;

    fn url(text: &str) -> CanonicalUrl {
        CanonicalUrl::parse(text).unwrap()
    }

    fn site(top: &str) -> Site {
        Site {
            id: SiteId(1),
            name: "s".to_owned(),
            conditions: SiteConditions::new(vec![url(top)]),
            created_s: 0,
            collected_s: None,
            round_open: false,
            paused: false,
            removed: None,
            counts: Default::default(),
        }
    }

    fn order(to: &str) -> FetchOrder {
        let plain = FetchOrder::plain(Ticket(1), Purpose::Page, url(to), AddressPolicy::Public);
        FetchOrder { site: Some(SiteId(1)), ..plain }
    }

    #[test]
    fn secrets_go_to_their_own_servers_and_a_login_that_ended_to_none() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("archive");
        let write = |name: &str, text: &str| {
            let path = parent.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let cookies = write("cookies.txt", "e.com\tFALSE\t/\tFALSE\t0\tsid\tabc\n");
        let headers = write("headers", "# mine\nBasic: me:topsecret\nX-Token: t\n");
        let (cookies, headers) = (Some(&*cookies), Some(&*headers));
        let given = GivenLogin { cookies, headers, ..GivenLogin::default() };
        std::fs::create_dir(&folder).unwrap();
        assert!(set(&folder, &LoginKey::Beside, &site("https://e.com/"), &given).unwrap());
        let logins = Logins::open(&folder, &LoginKey::Beside);
        let sent = |logins: &Logins, to: &str| {
            let mut order = order(to);
            let headers = logins.attach(&mut order, 100)?;
            assert!(order.with_login);
            Ok::<_, Trouble>(headers.into_iter().map(|(name, _)| name).collect::<Vec<_>>())
        };
        assert_eq!(
            sent(&logins, "https://e.com/a").unwrap(),
            ["Authorization", "X-Token", "Cookie"]
        );
        assert_eq!(sent(&logins, "http://e.com/a").unwrap(), ["Cookie"]);
        assert!(sent(&logins, "https://www.e.com/").unwrap().is_empty());
        assert!(sent(&logins, "https://other.com/").unwrap().is_empty());
        assert!(sent(&logins, "https://e.com/logout").is_err());
        let mut robots =
            FetchOrder { purpose: Purpose::Robots, ..order("https://e.com/robots.txt") };
        assert!(logins.attach(&mut robots, 100).unwrap().is_empty() && !robots.with_login);

        let cookies = |line: &str| {
            let (url, lines) = (url("https://e.com/"), vec![line.to_owned()]);
            Box::new(NewCookies { site: SiteId(1), url, lines, now_s: 100 })
        };
        let archive = Archive::open(&folder, &crate::OpenOptions::writing()).unwrap();
        let state = &**archive.state();
        let of_archive = state.add_site("s", &site("https://e.com/").conditions, 100).unwrap();
        assert_eq!(of_archive.id, SiteId(1));
        assert_eq!(logins.settle(Some(cookies("sid=good")), &[], state).unwrap(), None);
        logins.save();
        let reason = Reason::LoggedOut { status: 401, to: None };
        let ended = Command::LoggedOut { site: SiteId(1), url: url("https://e.com/"), reason };
        let commands = [ended.clone(), ended];
        let ended = logins.settle(Some(cookies("sid=out")), &commands, state).unwrap().unwrap();
        assert_eq!(ended.to_string(), "https://e.com/: logged out: status 401");
        assert!(state.sites().unwrap()[0].paused);
        logins.save();
        assert!(sent(&logins, "https://e.com/a").is_err(), "nothing is asked for logged out");
        logins.resume(&state.sites().unwrap());
        assert!(sent(&logins, "https://e.com/a").is_err(), "the site is still paused");
        state.pause_site(SiteId(1), false).unwrap();
        logins.resume(&state.sites().unwrap());
        assert_eq!(sent(&logins, "https://e.com/a").unwrap().last().unwrap(), "Cookie");
        let again = Logins::open(&folder, &LoginKey::Beside);
        let mut order = order("https://e.com/a");
        let headers = again.attach(&mut order, 100).unwrap();
        assert_eq!(headers.last().unwrap().1, "sid=good", "the jar before is kept");

        let other = Logins::open(&folder, &LoginKey::Text("y".repeat(32)));
        assert!(other.attach(&mut order, 100).is_err(), "it cannot be read");
        let none = Some("none");
        let none = GivenLogin { cookies: none, headers: none, ..GivenLogin::default() };
        assert!(set(&folder, &LoginKey::Beside, &site("https://e.com/"), &none).unwrap());
        assert!(!has(&folder, SiteId(1)));
    }
}
