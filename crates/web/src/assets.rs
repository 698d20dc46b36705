//! Files that are part of the program: nothing is loaded from outside.

use axum::{
    extract::Path,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};

const FILES: [(&str, &str, &str); 3] = [
    ("style.css", "text/css; charset=utf-8", include_str!("../assets/style.css")),
    ("app.js", "text/javascript; charset=utf-8", include_str!("../assets/app.js")),
    ("logo.svg", "image/svg+xml", include_str!("../assets/logo.svg")),
];

pub(crate) async fn asset(Path(name): Path<String>) -> Response {
    match FILES.iter().find(|(file, _, _)| *file == name) {
        Some((_, mime, body)) => (
            // Short, because a new version of the program has new files under the same names.
            [(header::CONTENT_TYPE, *mime), (header::CACHE_CONTROL, "max-age=300")],
            *body,
        )
            .into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
