-- Schema 3: what sites take in the packs of each partition, as its holder last said.
CREATE TABLE IF NOT EXISTS @sizes (
    partition integer NOT NULL, site integer NOT NULL, bytes bigint NOT NULL,
    PRIMARY KEY (partition, site));
