//! `testapp run`: carries out the command line, then follows signals, timers and HTTP until one of them ends it.

use std::io;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::app::{self, App};
use crate::arguments::{Port, RunArguments};
use crate::event::emit;
use crate::http_api;
use crate::signals;

pub(crate) async fn run(arguments: RunArguments) -> anyhow::Result<ExitCode> {
    let mut signal_rx = signals::receive_all().context("cannot install signal handlers")?;
    let (exit_tx, mut exit_rx) = mpsc::unbounded_channel();
    let ready = arguments.ready_after.is_none();
    let app = Arc::new(App::new(arguments.name, arguments.watch_file, ready, exit_tx));

    let mut exit_code = arguments.exit_code;
    if let (Some(path), Some(succeed_on)) = (&arguments.count_starts, arguments.succeed_on)
        && app::count_start(path)? >= succeed_on
    {
        exit_code = 0;
    }
    for file in &arguments.write {
        app::write(&file.path, file.text.as_bytes())?;
    }
    app.load();
    app.set_word(200, arguments.word);
    app.hold(arguments.hold)?;
    app.burn(arguments.burn)?;
    let listener = listen(arguments.port).await?;

    app.announce();
    if let Some(listener) = listener {
        serve(listener, Arc::clone(&app))?;
    }
    if let Some(delay) = arguments.ready_after {
        after(delay, &app, |app| app.set_ready(true));
    }
    if let Some(delay) = arguments.exit_after {
        after(delay, &app, move |app| app.exit(exit_code));
    }

    let code = loop {
        tokio::select! {
            Some(name) = signal_rx.recv() => {
                app.record_signal(name);
                match name {
                    "HUP" => app.reload(),
                    "TERM" if arguments.ignore_term => {}
                    "TERM" | "INT" => after(arguments.term_delay, &app, move |app| app.exit(arguments.term_code)),
                    _ => {}
                }
            }
            // On this one thread a handler has written its answer before the exit it asked for is seen here.
            Some(code) = exit_rx.recv() => break code,
        }
    };
    emit(format_args!("exiting code={code}"));
    Ok(ExitCode::from(code))
}

async fn listen(port: Port) -> anyhow::Result<Option<TcpListener>> {
    let address = match port {
        Port::None => return Ok(None),
        Port::Fixed(port) => (Ipv4Addr::UNSPECIFIED, port),
        Port::Auto => (Ipv4Addr::LOCALHOST, 0),
    };
    let listener =
        TcpListener::bind(address).await.with_context(|| format!("cannot listen on {}:{}", address.0, address.1))?;
    Ok(Some(listener))
}

fn serve(listener: TcpListener, app: Arc<App>) -> io::Result<()> {
    emit(format_args!("listening {}", listener.local_addr()?));
    tokio::spawn(async {
        if let Err(error) = axum::serve(listener, http_api::router(app)).await {
            emit(format_args!("server failed: {error}"));
        }
    });
    Ok(())
}

fn after(delay: Duration, app: &Arc<App>, act: impl FnOnce(&App) + Send + 'static) {
    let app = Arc::clone(app);
    tokio::spawn(async move {
        sleep(delay).await;
        act(&app);
    });
}
