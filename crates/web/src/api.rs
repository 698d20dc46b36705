//! The same things as JSON under `/api/v1`, described by an OpenAPI document that is built from the
//! same table as the routes: a route without a description cannot exist.

mod answers;
mod conditions;
mod document;
mod export;
mod routes;
mod schemas;

pub(crate) use routes::router;
