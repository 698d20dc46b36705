//! The columns of the tables, as `docs/tables.md` describes them.

pub(super) const VISITS: &str = "message visits {
  OPTIONAL INT64 visit;
  OPTIONAL INT64 visited (TIMESTAMP(MILLIS,true));
  OPTIONAL INT64 site;
  OPTIONAL BYTE_ARRAY url (STRING);
  OPTIONAL BYTE_ARRAY outcome (STRING);
  OPTIONAL INT64 status;
  OPTIONAL INT64 elapsed_ms;
  OPTIONAL INT64 received_bytes;
}";

pub(super) const VERSIONS: &str = "message versions {
  OPTIONAL INT64 version;
  OPTIONAL INT64 visited (TIMESTAMP(MILLIS,true));
  OPTIONAL BYTE_ARRAY url (STRING);
  OPTIONAL INT64 status;
  OPTIONAL BYTE_ARRAY mime (STRING);
  OPTIONAL INT64 bytes;
  OPTIONAL INT64 changed_permille;
}";

pub(super) const TEXT: &str = "message text {
  OPTIONAL INT64 version;
  OPTIONAL INT64 visited (TIMESTAMP(MILLIS,true));
  OPTIONAL BYTE_ARRAY url (STRING);
  OPTIONAL BYTE_ARRAY change (STRING);
  OPTIONAL INT64 position;
  OPTIONAL BYTE_ARRAY kind (STRING);
  OPTIONAL BYTE_ARRAY text (STRING);
}";

pub(super) const PAGES: &str = "message pages {
  OPTIONAL INT64 page;
  OPTIONAL BYTE_ARRAY url (STRING);
  OPTIONAL INT64 discovered (TIMESTAMP(MILLIS,true));
  OPTIONAL INT64 visited (TIMESTAMP(MILLIS,true));
  OPTIONAL INT64 due (TIMESTAMP(MILLIS,true));
  OPTIONAL BYTE_ARRAY outcome (STRING);
  OPTIONAL INT64 visits;
  OPTIONAL INT64 changes;
  OPTIONAL INT64 significant;
  OPTIONAL INT64 failures;
  OPTIONAL INT64 bytes;
  OPTIONAL INT64 version;
  OPTIONAL DOUBLE importance;
  OPTIONAL DOUBLE changes_per_day;
  OPTIONAL DOUBLE confidence;
}";

pub(super) const LINKS: &str = "message links {
  OPTIONAL INT64 page;
  OPTIONAL INT64 links_to;
}";
