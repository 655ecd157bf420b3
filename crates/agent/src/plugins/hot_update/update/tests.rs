//! Updates with real files, a real server and an app; what attackers do to them.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Instant;

use pillion_agent_api::Source;

use super::super::rig::{App, Changing, FileServer, HOST, TestResolver, config, redirect, sha256, whole};
use super::super::signature::tests::{KEY, SIGNATURE};
use super::*;

const V1: &[u8] = b"first";
const V2: &[u8] = b"second";

struct Bench {
    dir: tempfile::TempDir,
    app: App,
    config: HotUpdate,
    stop: Stop,
    before: Option<Good>,
}

impl Bench {
    fn new(sources: Vec<Source>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let app = App::start(dir.path().join("game.conf"));
        let config = config(dir.path(), app.reload(), sources);
        Self { dir, app, config, stop: Stop::default(), before: None }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("game.conf")
    }

    /// What the app would read.
    fn content(&self) -> Option<Vec<u8>> {
        fs::read(self.path()).ok()
    }

    fn update_by(&mut self, resolver: &dyn Resolver, wanted: &Wanted) -> Result<String, Failure> {
        let target = Target::of(wanted, &self.config)?;
        let store = Store::open(self.dir.path()).unwrap();
        let reloader = Reloader::new(&self.config, &self.stop).unwrap();
        let updater = Updater { config: &self.config, store: &store, reloader: &reloader, resolver, stop: &self.stop };
        let outcome = updater.run(&target, self.before.as_ref(), true);
        if outcome.is_ok() {
            updater.tidy(&target.good);
            self.before = Some(target.good);
        }
        outcome
    }

    fn update(&mut self, server: &FileServer, wanted: &Wanted) -> Result<String, Failure> {
        self.update_by(&TestResolver(server.address), wanted)
    }

    /// One that has the first version.
    fn at_v1(server: &FileServer) -> Self {
        let mut bench = Self::new(vec![server.source()]);
        assert_eq!(bench.update(server, &server.wanted("v1", "/v1", V1)).map(|_| ()), Ok(()));
        assert_eq!(bench.content().as_deref(), Some(V1));
        bench
    }

    /// Nothing has changed for the app, and nothing is left of the try.
    fn is_untouched(&self) {
        assert_eq!(self.content().as_deref(), Some(V1));
        assert_eq!(self.app.reloads.load(Ordering::Acquire), 1);
        let mut left: Vec<String> = fs::read_dir(self.dir.path().join(".versions"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, [format!("v1-{}", &sha256(V1)[..12])]);
    }
}

/// A server with the first version, that does something else with other requests.
fn hostile(
    answering: impl Fn(&str, &mut dyn std::io::Write) -> std::io::Result<()> + Send + Sync + 'static,
) -> FileServer {
    FileServer::start(
        move |head, out| {
            if head.starts_with("GET /v1 ") { whole(out, "200 OK", V1) } else { answering(head, out) }
        },
    )
}

fn refusal(outcome: Result<String, Failure>) -> (Kind, String) {
    let Failure { kind, message } = outcome.unwrap_err();
    (kind, message)
}

#[test]
fn a_version_is_fetched_placed_loaded_and_seen() {
    let server = FileServer::with_files(&[("/v1", V1), ("/v2", V2)]);
    let mut bench = Bench::at_v1(&server);
    bench.config.check = Some(bench.app.check("second"));
    let told = bench.update(&server, &server.wanted("v2", "/v2", V2)).unwrap();
    let address = bench.app.address;
    assert_eq!(told, format!("http://{address}/reload answered 200; http://{address}/ says \"second\""));
    assert_eq!(bench.content().as_deref(), Some(V2));
    let link = fs::read_link(bench.dir.path().join("current")).unwrap();
    assert_eq!(link, PathBuf::from(format!(".versions/v2-{}", &sha256(V2)[..12])));
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(bench.path()).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o444);
}

#[test]
fn a_stored_version_comes_back_without_the_network() {
    let server = FileServer::with_files(&[("/v1", V1), ("/v2", V2)]);
    let mut bench = Bench::at_v1(&server);
    bench.update(&server, &server.wanted("v2", "/v2", V2)).unwrap();
    let before = server.requests();
    bench.update(&server, &server.wanted("v1", "/v1", V1)).unwrap();
    assert_eq!((bench.content().as_deref(), server.requests()), (Some(V1), before));
}

#[test]
fn a_stored_version_that_somebody_changed_is_fetched_again() {
    let server = FileServer::with_files(&[("/v1", V1), ("/v2", V2)]);
    let mut bench = Bench::at_v1(&server);
    let stored = bench.dir.path().join("current/game.conf");
    fs::remove_file(&stored).unwrap();
    fs::write(&stored, "something else").unwrap();
    bench.update(&server, &server.wanted("v1", "/v1", V1)).unwrap();
    assert_eq!((bench.content().as_deref(), server.requests()), (Some(V1), 2));
}

#[test]
fn a_version_that_the_app_does_not_take_is_rolled_back() {
    let bad = b"bad file".as_slice();
    let server = FileServer::with_files(&[("/v1", V1), ("/v2", bad)]);
    let mut bench = Bench::at_v1(&server);
    bench.config.check = Some(bench.app.check("bad"));
    let (kind, message) = refusal(bench.update(&server, &server.wanted("v2", "/v2", bad)));
    let address = bench.app.address;
    assert_eq!(kind, Kind::NotLoaded);
    assert_eq!(
        message,
        format!("http://{address}/ did not say \"bad\" within 1 s: it answered 200 without it; the app has v1 again")
    );
    assert_eq!((bench.content().as_deref(), bench.app.reloads.load(Ordering::Acquire)), (Some(V1), 3));
}

#[test]
fn a_first_version_that_is_not_taken_gives_the_original_back() {
    let bad = b"bad file".as_slice();
    let server = FileServer::with_files(&[("/v1", bad)]);
    for original in [None, Some(b"of the image".as_slice())] {
        let mut bench = Bench::new(vec![server.source()]);
        if let Some(original) = original {
            fs::write(bench.path(), original).unwrap();
        }
        bench.config.check = Some(bench.app.check("bad"));
        let (_, message) = refusal(bench.update(&server, &server.wanted("v1", "/v1", bad)));
        assert!(message.ends_with("; the app has what it had before again"), "{message}");
        assert_eq!(bench.content().as_deref(), original);
    }
}

#[test]
fn attack_wrong_digest() {
    let server = hostile(|_, out| whole(out, "200 OK", b"something else"));
    let mut bench = Bench::at_v1(&server);
    let (kind, message) = refusal(bench.update(&server, &server.wanted("v2", "/v2", V2)));
    let found = sha256(b"something else");
    assert_eq!(
        (kind, message),
        (Kind::Unfit, format!("the file has sha256 {found}, and {} was asked for", sha256(V2)))
    );
    bench.is_untouched();
}

#[test]
fn attack_404_body() {
    // The very file that was asked for, so that nothing but the status speaks against it.
    let server = hostile(|_, out| whole(out, "404 Not Found", V2));
    let mut bench = Bench::at_v1(&server);
    let (kind, message) = refusal(bench.update(&server, &server.wanted("v2", "/v2", V2)));
    let port = server.address.port();
    assert_eq!((kind, message), (Kind::Unfit, format!("{HOST}:{port} answers 404, and only 200 brings a file")));
    bench.is_untouched();
}

#[test]
fn attack_no_digest_at_all() {
    let server = hostile(|_, out| whole(out, "200 OK", V2));
    let mut bench = Bench::at_v1(&server);
    let wanted = Wanted { sha256: None, ..server.wanted("v2", "/v2", V2) };
    let (kind, message) = refusal(bench.update(&server, &wanted));
    assert_eq!(kind, Kind::Refused);
    assert!(message.starts_with("no digest: write sha256"), "{message}");
    assert_eq!(server.requests(), 1);
    // The configuration may know it.
    bench.config.digests = [("v2".to_owned(), sha256(V2).to_ascii_uppercase())].into();
    assert_eq!(bench.update(&server, &wanted).map(|_| ()), Ok(()));
    let wrong = Wanted { sha256: Some(sha256(V1)), ..wanted };
    assert_eq!(refusal(bench.update(&server, &wrong)).0, Kind::Refused);
}

#[test]
fn attack_10_gib_body() {
    const TEN_GIB: u64 = 10 << 30;
    for (name, told) in [
        ("it says so", format!("Content-Length: {TEN_GIB}")),
        ("it says less", "Content-Length: 6".to_owned()),
        ("it does not end", "Transfer-Encoding: chunked".to_owned()),
        ("it says nothing", "Connection: close".to_owned()),
    ] {
        let is_chunked = told.contains("chunked");
        let server = hostile(move |_, out| {
            write!(out, "HTTP/1.1 200 OK\r\n{told}\r\n\r\n")?;
            let block = vec![b'x'; 64 * 1024];
            for _ in 0..TEN_GIB / block.len() as u64 {
                if is_chunked {
                    write!(out, "{:x}\r\n", block.len())?;
                }
                out.write_all(&block)?;
                if is_chunked {
                    write!(out, "\r\n")?;
                }
            }
            Ok(())
        });
        let mut bench = Bench::at_v1(&server);
        bench.config.bounds.max_bytes = 1 << 20;
        let (kind, message) = refusal(bench.update(&server, &server.wanted("v2", "/v2", V2)));
        let expected = if name == "it says less" {
            format!("the file has sha256 {}, and {} was asked for", sha256(b"xxxxxx"), sha256(V2))
        } else {
            "the file has more than 1048576 bytes: raise maxBytes if that is meant".to_owned()
        };
        assert_eq!((kind, message), (Kind::Unfit, expected), "{name}");
        bench.is_untouched();
    }
}

#[test]
fn a_body_that_breaks_off_is_no_file() {
    let server = hostile(|_, out| {
        write!(out, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")?;
        out.write_all(V2)
    });
    let mut bench = Bench::at_v1(&server);
    let (kind, message) = refusal(bench.update(&server, &server.wanted("v2", "/v2", V2)));
    assert_eq!((kind, message.as_str()), (Kind::Unreachable, "the download broke off: unexpected end of file"));
    bench.is_untouched();
}

#[test]
fn attack_slow_body() {
    let server = hostile(|_, out| {
        write!(out, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")?;
        loop {
            out.write_all(b"x")?;
            out.flush()?;
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let mut bench = Bench::at_v1(&server);
    bench.config.bounds.total_seconds = 1;
    let began = Instant::now();
    let (kind, message) = refusal(bench.update(&server, &server.wanted("v2", "/v2", V2)));
    assert_eq!((kind, message.as_str()), (Kind::Unreachable, "the download broke off: it took too long in all"));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    bench.is_untouched();
}

#[test]
fn attack_redirect_to_link_local() {
    for location in [
        "https://169.254.169.254/latest/meta-data/",
        "http://169.254.169.254/latest/meta-data/",
        "https://other.test/",
        "//169.254.169.254/",
        "https://files.test@169.254.169.254/",
    ] {
        let server = hostile(move |_, out| redirect(out, location));
        let mut bench = Bench::at_v1(&server);
        let (kind, message) = refusal(bench.update(&server, &server.wanted("v2", "/v2", V2)));
        assert_eq!(kind, Kind::Unfit, "{message}");
        assert!(message.starts_with(&format!("{HOST}:{} redirects: ", server.address.port())), "{message}");
        bench.is_untouched();
    }
    // Somebody lists it all the same: the address itself is refused.
    let server = hostile(|_, out| redirect(out, "https://169.254.169.254/x"));
    let mut bench = Bench::at_v1(&server);
    let listed = Source { prefix: "https://169.254.169.254/".to_owned(), ..server.source() };
    bench.config.sources.push(listed);
    let link_local: SocketAddr = "169.254.169.254:443".parse().unwrap();
    let resolver = Changing::new(vec![vec![server.address], vec![link_local]]);
    let (kind, message) = refusal(bench.update_by(&resolver, &server.wanted("v2", "/v2", V2)));
    assert_eq!(kind, Kind::Refused, "{message}");
    assert!(message.starts_with("the address 169.254.169.254 of 169.254.169.254 is link-local"), "{message}");
    bench.is_untouched();
}

#[test]
fn redirects_within_the_sources_are_followed_and_bounded() {
    let server = FileServer::start(|head, out| {
        let path = head.split(' ').nth(1).unwrap_or_default();
        match path {
            "/5" => whole(out, "200 OK", V1),
            "/round" => redirect(out, "/round"),
            path => redirect(out, &format!("/{}", path[1..].parse::<u32>().unwrap() + 1)),
        }
    });
    let mut bench = Bench::new(vec![server.source()]);
    assert_eq!(bench.update(&server, &server.wanted("v1", "/0", V1)).map(|_| ()), Ok(()));
    let (_, message) = refusal(bench.update(&server, &server.wanted("v2", "/round", V2)));
    assert_eq!(message, "more than 5 redirects");
}

#[test]
fn attack_dns_answer_that_changes() {
    let server = FileServer::with_files(&[("/v1", V1), ("/v2", V2)]);
    let mut bench = Bench::at_v1(&server);
    let private: SocketAddr = "10.0.0.1:443".parse().unwrap();
    bench.config.sources[0].allow_private = false;
    // A private answer is refused, also among public ones.
    let public: SocketAddr = "1.1.1.1:443".parse().unwrap();
    for answers in [vec![private], vec![public, private]] {
        let (kind, message) = refusal(bench.update_by(&Changing::new(vec![answers]), &server.wanted("v2", "/v2", V2)));
        assert_eq!(kind, Kind::Refused);
        assert_eq!(
            message,
            format!("the address 10.0.0.1 of {HOST} is private: set allowPrivate of the source if that is meant")
        );
    }
    // The good answer is checked; were it looked up again for the connection, the bad one would be connected to.
    bench.config.sources[0].allow_private = true;
    let link_local: SocketAddr = "169.254.169.254:443".parse().unwrap();
    let changing = Changing::new(vec![vec![server.address], vec![link_local]]);
    assert_eq!(bench.update_by(&changing, &server.wanted("v2", "/v2", V2)).map(|_| ()), Ok(()));
    assert_eq!((changing.asked.load(Ordering::Acquire), bench.content().as_deref()), (1, Some(V2)));
}

#[test]
fn credentials_go_to_their_source_only() {
    let server = FileServer::start(|head, out| {
        let path = head.split(' ').nth(1).unwrap_or_default();
        let port = head.lines().find_map(|line| line.strip_prefix("Host: ")).and_then(|host| host.split(':').nth(1));
        let port = port.unwrap_or_default();
        match path {
            "/private/v1" => redirect(out, "/private/again"),
            "/private/again" => redirect(out, &format!("https://other.test:{port}/public/v1")),
            _ => whole(out, "200 OK", V1),
        }
    });
    let mut bench = Bench::new(vec![]);
    let secrets: Vec<String> = ["of private", "of public"]
        .iter()
        .map(|secret| {
            let path = bench.dir.path().join(secret);
            fs::write(&path, format!("Bearer {secret}\n")).unwrap();
            path.display().to_string()
        })
        .collect();
    bench.config.sources = vec![
        Source { prefix: server.url("/private/"), authorization_file: Some(secrets[0].clone()), ..server.source() },
        Source { prefix: server.other_url("/public"), authorization_file: Some(secrets[1].clone()), ..server.source() },
    ];
    bench.update(&server, &server.wanted("v1", "/private/v1", V1)).unwrap();
    let heads = server.heads.lock().unwrap().clone();
    let sent: Vec<Option<&str>> =
        heads.iter().map(|head| head.lines().find_map(|line| line.strip_prefix("Authorization: "))).collect();
    assert_eq!(sent, [Some("Bearer of private"), Some("Bearer of private"), None]);
    // A file of two lines would be two headers.
    fs::write(&secrets[0], "Bearer x\r\nX-Evil: 1").unwrap();
    let (kind, message) = refusal(bench.update(&server, &server.wanted("v2", "/private/v2", V2)));
    assert_eq!(kind, Kind::Refused);
    assert!(message.ends_with("is not the value of an Authorization header: write one line"), "{message}");
}

#[test]
fn a_server_of_another_authority_is_not_believed() {
    let [server, other] = [FileServer::with_files(&[("/v1", V1)]), FileServer::with_files(&[])];
    let mut bench = Bench::new(vec![Source { ca_file: Some(other.ca_file()), ..server.source() }]);
    let (kind, message) = refusal(bench.update(&server, &server.wanted("v1", "/v1", V1)));
    assert_eq!(kind, Kind::Unreachable);
    assert!(message.contains("invalid peer certificate"), "{message}");
    assert_eq!(server.requests(), 0);
}

#[test]
fn a_proxy_is_asked_to_connect_and_looks_the_name_up_itself() {
    use std::io::{BufRead, BufReader, Write};
    let server = FileServer::with_files(&[("/v1", V1)]);
    let proxy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy_address = proxy.local_addr().unwrap();
    let behind = server.address;
    let asked = std::thread::spawn(move || {
        let (stream, _) = proxy.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            reader.read_line(&mut head).unwrap();
        }
        (&stream).write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
        let mut forth = std::net::TcpStream::connect(behind).unwrap();
        let mut back = (forth.try_clone().unwrap(), stream);
        std::thread::spawn(move || std::io::copy(&mut back.0, &mut back.1));
        let _ = std::io::copy(&mut reader, &mut forth);
        head
    });
    let mut bench = Bench::new(vec![Source {
        proxy: Some(format!("http://{proxy_address}")),
        allow_private: false,
        ..server.source()
    }]);
    // Only the proxy's own name is looked up here.
    let resolver = Changing::new(vec![vec![proxy_address], vec![]]);
    bench.update_by(&resolver, &server.wanted("v1", "/v1", V1)).unwrap();
    let port = behind.port();
    assert_eq!(asked.join().unwrap(), format!("CONNECT {HOST}:{port} HTTP/1.1\r\nHost: {HOST}:{port}\r\n\r\n"));
}

#[test]
fn only_so_many_versions_are_kept() {
    let server = FileServer::start(|head, out| whole(out, "200 OK", head.split(' ').nth(1).unwrap().as_bytes()));
    let mut bench = Bench::new(vec![server.source()]);
    bench.config.bounds.keep = 2;
    for number in 1..=4 {
        let path = format!("/{number}");
        bench.update(&server, &server.wanted(&format!("v{number}"), &path, path.as_bytes())).unwrap();
    }
    let mut left: Vec<String> = fs::read_dir(bench.dir.path().join(".versions"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left.iter().map(|name| &name[..2]).collect::<Vec<_>>(), ["v3", "v4"]);
}

#[test]
fn a_file_is_signed_where_a_key_is_given() {
    let good = FileServer::with_files(&[("/v1", b"test"), ("/v1.minisig", SIGNATURE.as_bytes()), ("/v2", b"test")]);
    let mut bench = Bench::new(vec![good.source()]);
    bench.config.public_key = Some(KEY.to_owned());
    assert_eq!(bench.update(&good, &good.wanted("v1", "/v1", b"test")).map(|_| ()), Ok(()));
    // From the store with the signature beside it.
    assert_eq!(bench.update(&good, &good.wanted("v1", "/v1", b"test")).map(|_| ()), Ok(()));
    assert_eq!(good.requests(), 2);
    let (_, message) = refusal(bench.update(&good, &good.wanted("v2", "/v2", b"test")));
    assert!(message.starts_with("no signature: "), "{message}");
    // The signature of another file, though the digest is as asked.
    let wrong = FileServer::with_files(&[("/v1", b"evil"), ("/v1.minisig", SIGNATURE.as_bytes())]);
    let mut bench = Bench::new(vec![wrong.source()]);
    bench.config.public_key = Some(KEY.to_owned());
    let (kind, message) = refusal(bench.update(&wrong, &wrong.wanted("v1", "/v1", b"evil")));
    assert_eq!((kind, message.as_str()), (Kind::Unfit, "the signature does not belong to the file"));
    assert_eq!(bench.content(), None);
}

#[test]
fn a_version_that_was_stored_without_a_signature_is_none_where_a_key_is_given() {
    let server = FileServer::with_files(&[("/v1", b"test"), ("/v1.minisig", SIGNATURE.as_bytes())]);
    let mut bench = Bench::new(vec![server.source()]);
    bench.update(&server, &server.wanted("v1", "/v1", b"test")).unwrap();
    bench.config.public_key = Some(KEY.to_owned());
    bench.update(&server, &server.wanted("v1", "/v1", b"test")).unwrap();
    assert_eq!(server.requests(), 3);
}
