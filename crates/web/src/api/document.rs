//! The OpenAPI document, built from the table of routes.

use serde_json::{Map, Value, json};

use super::{
    call::MAX_LIMIT,
    routes::Route,
    schemas::{OUTCOMES, reference, schemas},
};

pub(super) fn document(routes: &[Route]) -> Value {
    let mut paths = Map::new();
    for route in routes {
        let entry = paths.entry(format!("/api/v1{}", route.path)).or_insert_with(|| json!({}));
        entry[route.method.to_ascii_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Nenrin",
            "version": "1",
            "description": "Sites, pages, visits and versions of a continuous web archive. Where the \
                interface has a password, send it by HTTP Basic authentication (any user name).",
        },
        "paths": paths,
        "components": {"schemas": schemas()},
    })
}

fn operation(route: &Route) -> Value {
    let mut responses = Map::new();
    let done = match route.answer {
        Some(name) => json!({
            "description": "done",
            "content": {"application/json": {"schema": reference(name)}},
        }),
        None => json!({"description": "done"}),
    };
    responses.insert(route.status.to_string(), done);
    for (status, description) in [
        ("400", "a parameter or the body cannot be read"),
        ("403", "only an administrator may do this"),
        ("404", "not found"),
        ("409", "not possible now"),
    ] {
        let error = json!({
            "description": description,
            "content": {"application/json": {"schema": reference("Error")}},
        });
        responses.insert(status.to_owned(), error);
    }
    if route.method != "GET" {
        for (status, description) in
            [("413", "the body is longer than 256 KiB"), ("415", "not sent as application/json")]
        {
            let content = json!({"application/json": {"schema": reference("Error")}});
            let error = json!({"description": description, "content": content});
            responses.insert(status.to_owned(), error);
        }
    }
    let in_path = route.path.contains("{id}").then(|| {
        json!({"name": "id", "in": "path", "required": true, "schema": {"type": "integer", "minimum": 0}})
    });
    let in_query = route.query.iter().map(|(name, kind, required)| {
        json!({"name": name, "in": "query", "required": required, "schema": parameter(name, kind)})
    });
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.summary,
        "parameters": in_path.into_iter().chain(in_query).collect::<Vec<_>>(),
        "responses": responses,
    });
    if route.method != "GET" {
        // Requests without a body are sent as JSON too: no other website can do that without
        // permission.
        let schema = route.body.map_or(json!({"type": ["object", "null"]}), reference);
        let required = route.body.is_some();
        operation["requestBody"] =
            json!({"required": required, "content": {"application/json": {"schema": schema}}});
    }
    operation
}

/// The schema of a query parameter.
fn parameter(name: &str, kind: &str) -> Value {
    match (name, kind) {
        ("limit", _) => json!({"type": kind, "minimum": 1, "maximum": MAX_LIMIT}),
        ("from" | "to", _) => json!({"type": kind, "format": "date"}),
        ("kind", _) => json!({"type": kind, "enum": ["new", "changed", "gone"]}),
        ("outcome", _) => json!({"type": kind, "enum": OUTCOMES}),
        ("url", _) => json!({"type": kind, "minLength": 1, "examples": ["https://example.org/"]}),
        ("site" | "server", _) => json!({"type": kind, "minimum": 0, "maximum": u32::MAX}),
        (_, "integer") => json!({"type": kind, "minimum": 0, "maximum": i64::MAX}),
        _ => json!({"type": kind}),
    }
}
