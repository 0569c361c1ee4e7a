//! Two shell commands on two hosts with a path between them:
//!
//! `pair --rtt 20ms --capture DIR --server 'nginx ...' --port 80 --client 'curl http://$SERVER/'`

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::Duration;

use clap::Parser;
use tcpwhy_lab::path::parse_duration;
use tcpwhy_lab::{ElementSpec, Host, HostSpec, LinkOptions, Pair, PairOptions, PathSpec};

#[derive(Parser)]
struct Options {
    /// Round trip, half of it each way; 0 for none.
    #[arg(long, default_value = "0")]
    rtt: String,
    /// Further elements from the client to the server, in order, such as 'rate 100mbit queue 64k'.
    #[arg(long)]
    forward: Vec<ElementSpec>,
    /// Further elements from the server to the client, in order.
    #[arg(long)]
    backward: Vec<ElementSpec>,
    /// Of all random streams.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, default_value_t = 1500)]
    mtu: u32,
    /// No super-segments.
    #[arg(long)]
    no_tso: bool,
    /// Congestion control on both hosts; empty for the machine's default.
    #[arg(long, default_value = "cubic")]
    congestion: String,
    #[arg(long)]
    initcwnd: Option<u32>,
    #[arg(long)]
    initrwnd: Option<u32>,
    /// Setting of the client, such as net.ipv4.tcp_sack=0.
    #[arg(long)]
    client_sysctl: Vec<String>,
    /// Setting of the server.
    #[arg(long)]
    server_sysctl: Vec<String>,
    /// Writes client.pcap and server.pcap there.
    #[arg(long)]
    capture: Option<PathBuf>,
    /// Started first; runs until the client ends.
    #[arg(long)]
    server: Option<String>,
    /// Wait until the server listens on this port; otherwise on any.
    #[arg(long)]
    port: Option<u16>,
    /// Do not wait for the server at all.
    #[arg(long)]
    no_wait: bool,
    /// Ends the run. CLIENT and SERVER are set to the addresses.
    #[arg(long)]
    client: String,
    /// Prints what the path did to each packet.
    #[arg(long)]
    log: bool,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("pair: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<ExitCode, Box<dyn std::error::Error>> {
    tcpwhy_lab::enter_user_namespace()?;
    let rtt = parse_duration(&options.rtt)?;
    let delay = PathSpec::delay(rtt);
    let path = PathSpec {
        forward: [options.forward.clone(), delay.forward].concat(),
        backward: [options.backward.clone(), delay.backward].concat(),
        seed: options.seed,
    };
    let host = |sysctl: &[String]| HostSpec {
        sysctl: sysctl
            .iter()
            .filter_map(|line| line.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
        congestion: (!options.congestion.is_empty()).then(|| options.congestion.clone()),
        initcwnd: options.initcwnd,
        initrwnd: options.initrwnd,
        mtu: options.mtu,
        tso: !options.no_tso,
        ..HostSpec::default()
    };
    let pair = Pair::build(&PairOptions {
        path,
        client: host(&options.client_sysctl),
        server: host(&options.server_sysctl),
        link: LinkOptions::default(),
    })?;

    let mut captures = Vec::new();
    if let Some(dir) = &options.capture {
        std::fs::create_dir_all(dir)?;
        captures.push(capture(pair.client(), &dir.join("client.pcap"))?);
        captures.push(capture(pair.server(), &dir.join("server.pcap"))?);
    }
    let shell = |line: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        command.env("CLIENT", Pair::CLIENT_V4.to_string()).env("SERVER", Pair::SERVER_V4.to_string());
        command
    };
    let mut server = options.server.as_deref().map(|line| pair.server().spawn(shell(line))).transpose()?;
    if let (Some(server), false) = (&mut server, options.no_wait) {
        wait_ready(pair.server(), server, options.port)?;
    }
    let status = pair.client().spawn(shell(&options.client))?.wait()?;
    // The last acknowledgements are still on the path.
    sleep(Duration::from_nanos(rtt.as_nanos().unsigned_abs()) + Duration::from_millis(250));
    for mut tcpdump in captures {
        Command::new("kill").args(["-INT", &tcpdump.id().to_string()]).status()?;
        tcpdump.wait()?;
    }
    let overruns = pair.client().overruns()? + pair.server().overruns()?;
    let log = pair.log();
    if options.log {
        for record in &log.records {
            println!("{record:?}");
        }
    }
    if overruns + log.refused > 0 {
        eprintln!(
            "pair: the machine was too slow for the path: {overruns} overruns, {} refused",
            log.refused
        );
    }
    if let Some(mut server) = server {
        // Commands of the host end with it; this only spares the wait.
        server.kill()?;
        server.wait()?;
    }
    Ok(status.code().map_or(ExitCode::FAILURE, |code| ExitCode::from(code as u8)))
}

fn wait_ready(host: &Host, server: &mut Child, port: Option<u16>) -> Result<(), Box<dyn std::error::Error>> {
    for _ in 0..1000 {
        let ports = host.listening()?;
        if port.map_or(!ports.is_empty(), |port| ports.contains(&port)) {
            return Ok(());
        }
        if let Some(status) = server.try_wait()? {
            return Err(format!("the server ended before it listened: {status}").into());
        }
        sleep(Duration::from_millis(10));
    }
    Err("the server does not listen after 10 s".into())
}

fn capture(host: &Host, file: &Path) -> Result<Child, Box<dyn std::error::Error>> {
    let mut command = Command::new("tcpdump");
    command.args(["-i", host.interface(), "-n", "-U", "--immediate-mode", "-s", "128", "-B", "16384"]);
    command.args(["--time-stamp-precision=nano", "-Z", "root", "-w"]).arg(file);
    let mut tcpdump = host.spawn({
        command.stderr(Stdio::piped());
        command
    })?;
    let mut said = String::new();
    let mut lines = BufReader::new(tcpdump.stderr.take().ok_or("tcpdump has no standard error")?);
    while !said.contains("listening on") {
        if lines.read_line(&mut said)? == 0 {
            return Err(format!("tcpdump did not start: {said}").into());
        }
    }
    // It prints its counters at the end, which are not read: keep the pipe open until then.
    std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
    Ok(tcpdump)
}
