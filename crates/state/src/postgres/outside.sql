-- Schema 2: how often others than the holder changed the partition; smaller indexes.
ALTER TABLE @partition ADD COLUMN IF NOT EXISTS outside bigint NOT NULL DEFAULT 0;
DROP INDEX @pages_by_time;
DROP INDEX @pages_by_key;
CREATE INDEX pages_by_time ON @pages (bucket, id) WHERE bucket < 9223372036854775806;
CREATE INDEX pages_by_key ON @pages (hashtext(key)) WHERE key IS NOT NULL;
