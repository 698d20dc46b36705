//! The same data as JSON under `/api/v1`. The OpenAPI document is built from the same table as the
//! routes, so every route has a description.

mod answers;
mod call;
mod changes;
mod conditions;
mod document;
mod export;
pub(crate) mod human;
mod lookups;
mod routes;
mod schemas;
mod sites;
mod watches;

pub use routes::api_document;
pub(crate) use routes::router;
