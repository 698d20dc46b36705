-- The state in SQLite. Times are seconds since the epoch unless a column ends in _ms.
-- `open.rs` keeps the number of this schema in `user_version`, and the migrations of older files.
-- Each table takes a page of the file, so those that most archives never need are made when they are
-- first written: incidents (`incidents.rs`), watches (`watches.rs`), summaries (`changes.rs`), and with
-- several partitions those of `partitions.sql`.

-- Settings that are fixed when the archive is made, the epoch, and how far the queue was laid out.
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;

-- Sites: what people registered, and running totals.
CREATE TABLE sites (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, conditions TEXT NOT NULL,
    created_s INTEGER NOT NULL, collected_s INTEGER, paused INTEGER NOT NULL DEFAULT 0,
    pages INTEGER NOT NULL DEFAULT 0, visits INTEGER NOT NULL DEFAULT 0,
    versions INTEGER NOT NULL DEFAULT 0, problems INTEGER NOT NULL DEFAULT 0,
    raw_bytes INTEGER NOT NULL DEFAULT 0);
CREATE TABLE removals (
    id INTEGER PRIMARY KEY, site INTEGER NOT NULL, removal TEXT, reason TEXT NOT NULL,
    at_s INTEGER NOT NULL);
CREATE TABLE denied (page INTEGER PRIMARY KEY, site INTEGER NOT NULL);

-- Servers, and what was learnt of them by name.
CREATE TABLE servers (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
    robots_good_s INTEGER, robots_status INTEGER, robots_body BLOB, robots_tried_s INTEGER,
    asked_ms INTEGER, resting_until_ms INTEGER, strikes INTEGER NOT NULL DEFAULT 0,
    stretch_percent INTEGER NOT NULL DEFAULT 100);
CREATE TABLE notes (
    server INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (server, name)) WITHOUT ROWID;

-- Pages. The upper bits of a page's number are its server's. Validators have no declared type: each
-- value is kept in the shortest form it has. `turn` says when a page got its first version among
-- those of its site (times 256) and of all.
CREATE TABLE pages (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL, site INTEGER NOT NULL,
    discovered_s INTEGER NOT NULL, visited_s INTEGER, outcome INTEGER, due_s INTEGER,
    visits INTEGER NOT NULL DEFAULT 0, changes INTEGER NOT NULL DEFAULT 0,
    significant INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0,
    etag, last_modified, mark BLOB, bytes INTEGER NOT NULL DEFAULT 0, version INTEGER,
    history BLOB, nth INTEGER NOT NULL DEFAULT 0, importance INTEGER NOT NULL DEFAULT 0,
    rate INTEGER, sure INTEGER, turn INTEGER NOT NULL DEFAULT 0);
CREATE TABLE members (
    site INTEGER NOT NULL, page INTEGER NOT NULL, depth INTEGER NOT NULL, hops INTEGER NOT NULL,
    round INTEGER, PRIMARY KEY (site, page)) WITHOUT ROWID;
CREATE TABLE bags (
    list INTEGER NOT NULL, first TEXT NOT NULL, pages BLOB NOT NULL,
    PRIMARY KEY (list, first)) WITHOUT ROWID;

-- Pages in the order of their discovery, their links, and what the crawl order knows.
CREATE TABLE found (nth INTEGER PRIMARY KEY, page INTEGER NOT NULL, reading INTEGER NOT NULL);
CREATE TABLE links (nth INTEGER PRIMARY KEY, targets BLOB NOT NULL);
CREATE TABLE crawl_order (part INTEGER PRIMARY KEY, bytes BLOB NOT NULL);

-- The long-term queue: buckets, and coarse buckets of a day that are laid out into buckets in time.
CREATE TABLE due (
    bucket INTEGER NOT NULL, page INTEGER NOT NULL, PRIMARY KEY (bucket, page)) WITHOUT ROWID;
CREATE TABLE coarse_buckets (
    coarse INTEGER NOT NULL, part INTEGER NOT NULL, pages BLOB NOT NULL,
    PRIMARY KEY (coarse, part)) WITHOUT ROWID;
CREATE TABLE shared (site INTEGER PRIMARY KEY, state BLOB NOT NULL);
CREATE TABLE pulled (page INTEGER PRIMARY KEY, hint TEXT NOT NULL);

-- Versions, times at which pages were gone, and versions that the store has still to forget. Their
-- indexes by time, and the table `summaries` of titles and lines read from versions, are made when
-- someone first asks for changes (`changes.rs`).
CREATE TABLE mimes (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE versions (
    page INTEGER NOT NULL, at_s INTEGER NOT NULL, version INTEGER NOT NULL,
    status INTEGER NOT NULL, mime INTEGER NOT NULL, bytes INTEGER NOT NULL, permille INTEGER,
    PRIMARY KEY (page, at_s, version)) WITHOUT ROWID;
CREATE TABLE gone (
    page INTEGER NOT NULL, at_s INTEGER NOT NULL, PRIMARY KEY (page, at_s)) WITHOUT ROWID;
CREATE TABLE prunes (
    id INTEGER PRIMARY KEY, site INTEGER NOT NULL, at_s INTEGER NOT NULL, rule TEXT NOT NULL,
    versions INTEGER NOT NULL, raw_bytes INTEGER NOT NULL);
CREATE TABLE pruning (version INTEGER PRIMARY KEY);

-- Rounds, and what those that choose their pages leave behind.
CREATE TABLE rounds (
    id INTEGER PRIMARY KEY, site INTEGER NOT NULL, started_s INTEGER NOT NULL, ended_s INTEGER,
    counts TEXT NOT NULL);
CREATE INDEX rounds_by_site ON rounds (site, id);
CREATE TABLE structure (site INTEGER PRIMARY KEY, state BLOB NOT NULL);
CREATE TABLE blocks (page INTEGER PRIMARY KEY, blocks BLOB NOT NULL);
CREATE TABLE skips (round INTEGER PRIMARY KEY, reasons TEXT NOT NULL);

-- The log of visits in portions, and which sites and outcomes each portion holds. The table
-- `visits_by_page` is made when someone first asks for the visits of a page.
CREATE TABLE visits (first INTEGER PRIMARY KEY, visits BLOB NOT NULL);
CREATE TABLE visits_by_site (
    site INTEGER NOT NULL, portion INTEGER NOT NULL, outcomes INTEGER NOT NULL,
    PRIMARY KEY (site, portion)) WITHOUT ROWID;

-- Sums that are kept with every commit. Site 0 is all sites together.
CREATE TABLE days (
    site INTEGER NOT NULL, day INTEGER NOT NULL, visits INTEGER NOT NULL, versions INTEGER NOT NULL,
    problems INTEGER NOT NULL, raw_bytes INTEGER NOT NULL, received_bytes INTEGER NOT NULL,
    stored_bytes INTEGER NOT NULL, PRIMARY KEY (site, day)) WITHOUT ROWID;
CREATE TABLE site_sums (
    site INTEGER PRIMARY KEY, received_bytes INTEGER NOT NULL, stored_bytes INTEGER NOT NULL);
CREATE TABLE kind_sums (
    site INTEGER NOT NULL, kind INTEGER NOT NULL, versions INTEGER NOT NULL,
    received_bytes INTEGER NOT NULL, stored_bytes INTEGER NOT NULL,
    PRIMARY KEY (site, kind)) WITHOUT ROWID;
CREATE TABLE site_worth (
    site INTEGER PRIMARY KEY, turns INTEGER NOT NULL, estimated INTEGER NOT NULL,
    rate INTEGER NOT NULL, sure INTEGER NOT NULL, weighed INTEGER NOT NULL,
    importance INTEGER NOT NULL, significant INTEGER NOT NULL);
CREATE TABLE worth_groups (
    site INTEGER NOT NULL, best INTEGER NOT NULL, grp INTEGER NOT NULL, pages INTEGER NOT NULL,
    importance INTEGER NOT NULL, PRIMARY KEY (site, best, grp)) WITHOUT ROWID;
