-- What the archive has once ("@" stands for its schema). The partitions have schemas of their own.

-- How it is divided, and where its content is, so that no two archives share a place.
CREATE TABLE @archive (
    schema_number bigint NOT NULL, bucket_s bigint NOT NULL, partitions integer NOT NULL,
    id text NOT NULL, content text);

-- Workers, by what they call themselves, and when they were last heard.
CREATE TABLE @workers (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    heard_at timestamptz NOT NULL DEFAULT clock_timestamp(), load bigint NOT NULL DEFAULT 0);

-- Who holds which partition, and until when by the clock of the database.
CREATE TABLE @leases (
    partition integer PRIMARY KEY, worker bigint, epoch bigint NOT NULL DEFAULT 0,
    until_at timestamptz NOT NULL DEFAULT '-infinity', since_at timestamptz,
    load bigint NOT NULL DEFAULT 0);

-- What sites take in the packs of each partition, as its holder last said.
CREATE TABLE @sizes (
    partition integer NOT NULL, site integer NOT NULL, bytes bigint NOT NULL,
    PRIMARY KEY (partition, site));
