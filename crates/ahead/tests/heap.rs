//! Does the heap of the main thread ask for large pages? Tests of the usual harness run on others.

fn main() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // `hg` among the flags of a mapping (proc_pid_smaps(5)).
        let asked = || {
            let maps = std::fs::read_to_string("/proc/self/smaps").expect("the mappings");
            maps.lines().any(|line| line.starts_with("VmFlags:") && line.contains(" hg"))
        };
        assert!(!asked());
        tcpwhy_ahead::heap::use_large_pages(128 << 20);
        let of_the_heap = vec![1_u8; 100_000];
        assert_eq!(asked(), std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists());
        drop(of_the_heap);
    }
}
