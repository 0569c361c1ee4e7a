//! Does free memory between small allocations go back to the system?

#![cfg(all(target_os = "linux", target_env = "gnu"))]

/// This process's bytes in memory.
fn resident() -> usize {
    let told = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = told.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kb = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    kb.unwrap_or_default() << 10
}

#[test]
fn what_lies_free_between_small_pieces_goes_back() {
    let pieces: Vec<Box<[u8; 1024]>> = (0..1 << 16).map(|n| Box::new([n as u8; 1024])).collect();
    let all = resident();
    assert!(all > 64 << 20, "{all}");
    // One of 64 keeps the pages of the others in use.
    let kept: Vec<_> = pieces.into_iter().step_by(64).collect();
    let free = resident();
    assert!(free > all - (8 << 20), "{free} of {all}: nobody has to be asked");
    tcpwhy_sandbox::give_gaps_back();
    let left = resident();
    assert!(left < all - (48 << 20), "{left} of {all}");
    assert!(kept.iter().enumerate().all(|(n, piece)| piece[0] == (64 * n) as u8));
}
