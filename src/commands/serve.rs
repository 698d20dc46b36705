//! Interface and replay over HTTP.

use std::{future::Future, net::SocketAddr, sync::Arc};

use anyhow::Context as _;
use tokio::net::TcpListener;

use super::Context;
use crate::{archive::Archive, cli::ServeArgs, exit::{Exit, usage}};

/// The program's runtime: one thread for the loop and the sockets of each core.
pub fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(32)
        .build()
        .context("cannot start the runtime")
}

/// Ready when someone wants the program to end.
pub async fn interrupted() {
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        result = tokio::signal::ctrl_c() => {
            if result.is_err() {
                std::future::pending::<()>().await;
            }
        }
        () = terminated => {}
    }
}
