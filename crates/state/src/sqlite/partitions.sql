-- Tables of a state that is one of several partitions; others have none of them.

-- Mail to other partitions, and how far it was sent to and read from each.
CREATE TABLE outbox (
    receiver INTEGER NOT NULL, number INTEGER NOT NULL, mail TEXT NOT NULL,
    PRIMARY KEY (receiver, number)) WITHOUT ROWID;
CREATE TABLE mailboxes (
    partition INTEGER PRIMARY KEY, sent INTEGER NOT NULL DEFAULT 0,
    read INTEGER NOT NULL DEFAULT 0);

-- Pages of other partitions: links to them (hash of the URL, partition), what pages got of scores from
-- there, of it what is in the crawl order as it was kept, and the hashes of their URLs.
CREATE TABLE far_links (nth INTEGER PRIMARY KEY, targets BLOB NOT NULL);
CREATE TABLE received (
    nth INTEGER PRIMARY KEY, micros INTEGER NOT NULL, kept INTEGER NOT NULL DEFAULT 0,
    hash INTEGER NOT NULL DEFAULT 0);
CREATE INDEX received_by_hash ON received (hash);

-- Sites over several partitions: rounds that ended in others, and what pages ask for on a day.
CREATE TABLE rounds_elsewhere (
    site INTEGER NOT NULL, partition INTEGER NOT NULL, ended INTEGER NOT NULL,
    PRIMARY KEY (site, partition)) WITHOUT ROWID;
CREATE TABLE needs (
    site INTEGER NOT NULL, day INTEGER NOT NULL, partition INTEGER NOT NULL,
    milli_visits INTEGER NOT NULL, pages INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (site, day, partition)) WITHOUT ROWID;
