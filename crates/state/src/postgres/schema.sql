-- The state of one partition in PostgreSQL, in a schema of its own ("@" stands for its name and a dot).
-- Times are seconds since the epoch unless a column ends in _ms. `open.rs` keeps the number of this
-- schema, and the migrations of older ones. docs/scale.md describes the views for readers.

-- The next numbers, the epoch, the resolution of the queue, and how often others than the holder
-- changed the partition. Whoever changes it locks this row first.
CREATE TABLE @partition (
    own integer NOT NULL, epoch bigint NOT NULL DEFAULT 0, bucket_s bigint NOT NULL,
    servers bigint NOT NULL DEFAULT 0, pages bigint NOT NULL DEFAULT 0,
    visits bigint NOT NULL DEFAULT 0, rounds bigint NOT NULL DEFAULT 0,
    summaries bigint NOT NULL DEFAULT 0, outside bigint NOT NULL DEFAULT 0);

-- Mail to other partitions, and how far it was sent to and read from each.
CREATE TABLE @outbox (
    receiver integer NOT NULL, number bigint NOT NULL, mail text NOT NULL,
    PRIMARY KEY (receiver, number));
CREATE TABLE @mailboxes (
    partition integer PRIMARY KEY, sent bigint NOT NULL DEFAULT 0, read bigint NOT NULL DEFAULT 0);

-- Sites: what people registered, and running totals.
CREATE TABLE @sites (
    id integer PRIMARY KEY, name text NOT NULL UNIQUE, conditions text NOT NULL,
    created_s bigint NOT NULL, collected_s bigint, paused boolean NOT NULL DEFAULT false,
    pages bigint NOT NULL DEFAULT 0, visits bigint NOT NULL DEFAULT 0,
    versions bigint NOT NULL DEFAULT 0, problems bigint NOT NULL DEFAULT 0,
    raw_bytes bigint NOT NULL DEFAULT 0);
CREATE TABLE @removals (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, site integer NOT NULL, removal text,
    reason text NOT NULL, at_s bigint NOT NULL);
CREATE TABLE @incidents (
    nth bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL UNIQUE,
    event text NOT NULL, at_s bigint NOT NULL, over_s bigint, site integer, name text NOT NULL,
    detail text NOT NULL, cause text NOT NULL);
CREATE TABLE @watches (id integer PRIMARY KEY, watch text NOT NULL);
CREATE TABLE @watch_hits (id bigint PRIMARY KEY, hit text NOT NULL);

-- Servers, and what was learnt of them by name. Their numbers are the archive's: those of partition
-- p are p plus a multiple of the number of partitions.
CREATE TABLE @servers (
    id integer PRIMARY KEY, name text NOT NULL COLLATE "C" UNIQUE,
    robots_good_s bigint, robots_status integer, robots_body bytea, robots_tried_s bigint,
    asked_ms bigint, resting_until_ms bigint, strikes integer NOT NULL DEFAULT 0,
    stretch_percent bigint NOT NULL DEFAULT 100);
CREATE TABLE @notes (
    server integer NOT NULL, name text NOT NULL, value text NOT NULL, PRIMARY KEY (server, name));

-- Pages. The upper bits of a page's number are its server's. `bucket` says where a page with a time
-- of its own waits in the queue: 2^63 - 2 for one that waits for its turn, without a time. `key` is
-- the URL's key for look-ups, while the page has versions that may be read. `turn` says when a page got its first version among those of its site (times
-- 256) and of all.
CREATE TABLE @pages (
    id bigint PRIMARY KEY, discovered_s bigint NOT NULL, visited_s bigint, due_s bigint,
    bucket bigint, bytes bigint NOT NULL, version bigint, importance bigint NOT NULL, rate bigint,
    nth integer NOT NULL, site integer NOT NULL, visits integer NOT NULL, changes integer NOT NULL,
    significant integer NOT NULL, failures integer NOT NULL, turn integer NOT NULL, denied integer,
    outcome smallint, reading smallint NOT NULL, sure smallint,
    path text COLLATE "C" NOT NULL, key text COLLATE "C", etag text, last_modified text, mark bytea,
    history bytea, pulled text);
CREATE UNIQUE INDEX pages_by_nth ON @pages (nth);
CREATE INDEX pages_by_time ON @pages (bucket, id) WHERE bucket < 9223372036854775806;
CREATE INDEX pages_by_key ON @pages (hashtext(key)) WHERE key IS NOT NULL;
CREATE INDEX pages_denied ON @pages (denied, id) WHERE denied IS NOT NULL;
CREATE TABLE @members (
    page bigint NOT NULL, round bigint, site integer NOT NULL, depth integer NOT NULL,
    hops integer NOT NULL, PRIMARY KEY (site, page));

-- Links between pages by discovery numbers, links to pages of other partitions (the hash of the URL
-- and the partition, in turn), what pages got of scores from there, and what the crawl order knows.
-- Site 0 of `needs` is the whole archive.
CREATE TABLE @links (nth integer PRIMARY KEY, targets integer[] NOT NULL);
CREATE TABLE @far_links (nth integer PRIMARY KEY, targets bigint[] NOT NULL);
CREATE TABLE @received (nth integer PRIMARY KEY, micros bigint NOT NULL, kept bigint NOT NULL DEFAULT 0,
    hash bigint NOT NULL);
CREATE INDEX received_by_hash ON @received (hash);
CREATE TABLE @crawl_order (part integer PRIMARY KEY, bytes bytea NOT NULL);

-- Sites over several partitions: rounds that ended in others, and what pages ask for on a day.
CREATE TABLE @rounds_elsewhere (
    site integer NOT NULL, partition integer NOT NULL, ended bigint NOT NULL,
    PRIMARY KEY (site, partition));
CREATE TABLE @needs (
    site integer NOT NULL, day bigint NOT NULL, partition integer NOT NULL,
    milli_visits bigint NOT NULL, pages bigint NOT NULL, PRIMARY KEY (site, day, partition));
CREATE TABLE @shared (site integer PRIMARY KEY, state bytea NOT NULL);

-- Versions, times at which pages were gone, and versions that the store has still to forget.
CREATE TABLE @mimes (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE);
CREATE TABLE @versions (
    page bigint NOT NULL, at_s bigint NOT NULL, version bigint NOT NULL, bytes bigint NOT NULL,
    mime integer NOT NULL, status integer NOT NULL, permille smallint,
    PRIMARY KEY (page, at_s, version));
CREATE TABLE @gone (page bigint NOT NULL, at_s bigint NOT NULL, PRIMARY KEY (page, at_s));
CREATE TABLE @prunes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, site integer NOT NULL, at_s bigint NOT NULL,
    rule text NOT NULL, versions bigint NOT NULL, raw_bytes bigint NOT NULL);
CREATE TABLE @pruning (version bigint PRIMARY KEY);
CREATE TABLE @summaries (
    version bigint PRIMARY KEY, title text NOT NULL, line text NOT NULL, removed boolean NOT NULL,
    previous bigint);

-- Rounds, and what those that choose their pages leave behind.
CREATE TABLE @rounds (
    id bigint PRIMARY KEY, site integer NOT NULL, started_s bigint NOT NULL, ended_s bigint,
    new_pages bigint NOT NULL DEFAULT 0, changed bigint NOT NULL DEFAULT 0,
    same bigint NOT NULL DEFAULT 0, not_modified bigint NOT NULL DEFAULT 0,
    gone bigint NOT NULL DEFAULT 0, refused bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0, received_bytes bigint NOT NULL DEFAULT 0,
    stored_bytes bigint NOT NULL DEFAULT 0, trapped bigint NOT NULL DEFAULT 0,
    skipped bigint NOT NULL DEFAULT 0, first bigint NOT NULL DEFAULT 0);
CREATE INDEX rounds_by_site ON @rounds (site, id);
CREATE TABLE @structure (site integer PRIMARY KEY, state bytea NOT NULL);
CREATE TABLE @blocks (page bigint PRIMARY KEY, blocks bytea NOT NULL);
CREATE TABLE @skips (round bigint PRIMARY KEY, reasons text NOT NULL);

-- The log of visits.
CREATE TABLE @visits (
    id bigint PRIMARY KEY, page bigint NOT NULL, at_s bigint NOT NULL,
    received_bytes bigint NOT NULL, elapsed_ms bigint NOT NULL, site integer NOT NULL,
    status integer NOT NULL, outcome smallint NOT NULL, detail text);
CREATE INDEX visits_by_site ON @visits (site, id);
CREATE INDEX visits_with_problem ON @visits (outcome, site, id) WHERE outcome >= 3;

-- Sums that are kept with every commit. Site 0 is all sites together.
CREATE TABLE @days (
    site integer NOT NULL, day bigint NOT NULL, visits bigint NOT NULL, versions bigint NOT NULL,
    problems bigint NOT NULL, raw_bytes bigint NOT NULL, received_bytes bigint NOT NULL,
    stored_bytes bigint NOT NULL, PRIMARY KEY (site, day));
CREATE TABLE @site_sums (
    site integer PRIMARY KEY, received_bytes bigint NOT NULL, stored_bytes bigint NOT NULL);
CREATE TABLE @kind_sums (
    site integer NOT NULL, kind smallint NOT NULL, versions bigint NOT NULL,
    received_bytes bigint NOT NULL, stored_bytes bigint NOT NULL, PRIMARY KEY (site, kind));
CREATE TABLE @site_worth (
    site integer PRIMARY KEY, turns bigint NOT NULL, estimated bigint NOT NULL,
    rate bigint NOT NULL, sure bigint NOT NULL, weighed bigint NOT NULL,
    importance bigint NOT NULL, significant bigint NOT NULL);
CREATE TABLE @worth_groups (
    site integer NOT NULL, best boolean NOT NULL, grp integer NOT NULL, pages bigint NOT NULL,
    importance bigint NOT NULL, PRIMARY KEY (site, best, grp));
