//! A real device as the accelerator: the bytes are those of OpenSSL's own provider, the counters say
//! that the device did them, and a server's workers open it for themselves. PoCL is the device.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::OnceLock;

use crate::support::evp::Evp;
use crate::support::installation::OpenSsl;
use crate::support::multiblock::{aad, begin, keyed, multiblock, opens_one_by_one, record};
use crate::support::site::{PAGES, Site, TLS_1_2};
use crate::support::{Modules, Numbers};
use wattlock_engine::Lane;
use wattlock_gpu::opencl::{choose, devices};
use wattlock_provider::statistics::{self, Event, SharedTable, Statistics};
use wattlock_testing::{wait_for, wait_until};

const POCL: &str = "accelerator = opencl:portable";

/// Whether PoCL is here; if not, says that `test` is skipped. Asked once: two at once are too much for
/// PoCL 3.1, and the module asks for itself.
fn has_pocl(test: &str) -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let found =
        *FOUND.get_or_init(|| choose(&devices().unwrap_or_default(), Some("portable")).is_ok());
    if !found {
        wattlock_testing::skip("pocl", format_args!("{test}: no OpenCL device"));
    }
    found
}

/// One after the other, since the counters are the whole process's.
#[test]
fn the_bytes_are_right_with_any_fault_of_an_opencl_device() {
    if !has_pocl("the_bytes_are_right_with_any_fault_of_an_opencl_device") {
        return;
    }
    let table = Rc::new(SharedTable::new().unwrap());
    let all = Everything::with(&table, "threshold = 0");
    let Some(all) = all else { return };
    let before = all.open();
    all.agrees();
    let after = own(&table);
    let since = |of: &dyn Fn(&Statistics) -> u64| of(&after) - of(&before);
    let device = after.device.as_deref().unwrap();
    assert!(device.starts_with("opencl:0 on the CPU: pthread"), "{device}");
    let lane = |lane| since(&|one| one.lane(lane).calls);
    let times = |event| since(&|one| one.times(event));
    assert!(lane(Lane::Accelerator) > 0);
    // Parts of a message of GCM and single chains are no work for a device.
    assert!(times(Event::Unsupported) > 0);
    assert_eq!(times(Event::Fault), 0);
    let late = times(Event::Timeout) + times(Event::Absent);
    assert_eq!(lane(Lane::Cpu), times(Event::Unsupported) + late);
    let multiblock = since(&|one| one.multiblock().calls);
    let with_many = since(&|one| one.lane(Lane::Accelerator).bytes);
    assert!(multiblock > 0 && with_many > 1 << 20, "{multiblock} writes, {with_many} bytes");
    drop(all);
    auto_measures_the_device_when_it_is_open(&table);
}

/// Until then T is what no device is worth a request for.
fn auto_measures_the_device_when_it_is_open(table: &Rc<SharedTable>) {
    let all = Everything::with(table, "threshold = auto").unwrap();
    let mut context = all.evp.cipher("AES-256-CTR", "wattlock");
    assert!(context.init(true, Some(&[1; 32]), Some(&[2; 16])));
    // The process counts already, and notes T when that is found.
    let before = own(table).threshold();
    assert_eq!(before, Some(0));
    wait_until("T is measured", || {
        assert!(context.update(&[0; 4096]).is_some());
        own(table).threshold() != before
    });
    assert!(own(table).threshold() >= Some(1024));
}

/// Both providers, with the device that the settings name.
struct Everything {
    evp: Evp,
    table: Rc<SharedTable>,
    _modules: Modules,
}

impl Everything {
    fn with(table: &Rc<SharedTable>, settings: &str) -> Option<Self> {
        let modules = Modules::new(
            OpenSsl::System,
            &format!("statistics = {}\n{POCL}\n{settings}", table.setting()),
        );
        let mut evp = Evp::without_providers(&modules)?;
        evp.configure(&modules.path().join("openssl.cnf"));
        for name in [c"default", c"wattlock"] {
            evp.provider(name).unwrap();
        }
        Some(Self { evp, table: Rc::clone(table), _modules: modules })
    }

    /// Asks until the device is open, and returns what was counted until then.
    fn open(&self) -> Statistics {
        let mut context = self.evp.cipher("AES-256-CTR", "wattlock");
        assert!(context.init(true, Some(&[1; 32]), Some(&[2; 16])));
        wait_for(|| {
            assert!(context.update(&[0; 4096]).is_some());
            let counted = own(&self.table);
            if counted.lane(Lane::Accelerator).calls > 0 {
                assert!(counted.times(Event::Absent) > 0, "the first request waited for a driver");
                return Ok(counted);
            }
            assert_eq!(counted.times(Event::Fault), 0, "the device cannot be opened");
            Err("the device is not open")
        })
    }

    fn agrees(&self) {
        let mut numbers = Numbers(31);
        for (name, key_len) in [
            ("AES-256-ECB", 32),
            ("AES-192-CBC", 24),
            ("AES-128-CTR", 16),
            ("AES-256-CTR", 32),
            ("AES-256-GCM", 32),
        ] {
            let (key, iv) = (numbers.bytes(key_len), numbers.bytes(16));
            let iv = if name.ends_with("GCM") { &iv[..12] } else { &iv[..] };
            for encrypt in [true, false] {
                let mut both = ["wattlock", "default"].map(|of| self.evp.cipher(name, of));
                for context in &mut both {
                    assert!(context.init(encrypt, Some(&key), Some(iv)));
                }
                for len in [16, 8192, 8208, 100_000, 48, 1 << 20, 5] {
                    let input = numbers.bytes(len);
                    let [ours, theirs] = both.each_mut().map(|context| context.update(&input));
                    assert!(ours.is_some() && ours == theirs, "{name}: {len}, {encrypt}");
                }
            }
        }
        // Writes as libssl makes them, and such as no device takes whole.
        let writes =
            [(8, 15_872, 0), (4, 16_384, 0), (4, 16_000, 3), (8, 1000, 0), (2, 16, 0), (1, 512, 0)];
        for (records, fragment, more) in writes {
            self.gcm(&mut numbers, records, fragment, more);
            if more == 0 {
                self.composites(&mut numbers, records, fragment);
            }
        }
    }

    /// Records that were made at once are those of one by one.
    fn gcm(&self, numbers: &mut Numbers, records: usize, fragment: usize, more: usize) {
        for (name, key_len) in [("AES-128-GCM", 16), ("AES-256-GCM", 32)] {
            let (key, mut iv) = (numbers.bytes(key_len), numbers.bytes(12));
            // The counter of the nonces wraps among the records.
            iv[4..].copy_from_slice(&(u64::MAX - 1).to_be_bytes());
            let mut both = ["wattlock", "default"].map(|of| self.evp.cipher(name, of));
            both.iter_mut().for_each(|context| begin(context, &key, &iv));
            let [ours, theirs] = &mut both;
            let payload = numbers.bytes(fragment * records + more);
            let sealed = multiblock(ours, &aad(7, 0), &payload, records).unwrap();
            let mut expected = Vec::new();
            for index in 0..records {
                let rest = &payload[index * fragment..];
                let part = if index + 1 == records { rest } else { &rest[..fragment] };
                expected.extend(record(theirs, 7 + index as u64, part));
            }
            assert!(sealed == expected, "{name}: {records} of {fragment} and {more}");
        }
    }

    /// Their IVs are random, so that OpenSSL's own has to open them.
    fn composites(&self, numbers: &mut Numbers, records: usize, fragment: usize) {
        for (name, key_len, mac_len) in
            [("AES-256-CBC-HMAC-SHA1", 32, 20), ("AES-128-CBC-HMAC-SHA256", 16, 32)]
        {
            let (key, mac_key) = (numbers.bytes(key_len), numbers.bytes(mac_len));
            let keys = (&key[..], &mac_key[..]);
            let mut ours = keyed(&self.evp, name, "wattlock", keys, true);
            let mut theirs = keyed(&self.evp, name, "default", keys, false);
            let payload = numbers.bytes(fragment * records);
            let sealed = multiblock(&mut ours, &aad(7, 0), &payload, records).unwrap();
            opens_one_by_one(&mut theirs, &mut 7, &sealed, &payload, fragment);
        }
    }
}

/// What this process has counted.
fn own(table: &SharedTable) -> Statistics {
    let all = table.read().unwrap();
    all.into_iter().find(|one| one.process == u64::from(std::process::id())).unwrap()
}

/// The process is over long before the driver has compiled, and does not fall over it.
#[test]
fn a_process_may_end_while_its_device_is_opened() {
    if !has_pocl("a_process_may_end") || !OpenSsl::System.has("openssl") {
        return;
    }
    for _ in 0..3 {
        let folder = tempfile::TempDir::new().unwrap();
        let (ran, counted) = encipher(folder.path(), "threshold = 1000", 1 << 20);
        assert!(ran.status.success(), "{ran:?}");
        assert!(counted.times(Event::Absent) > 0);
        assert_eq!(counted.times(Event::Fault), 0);
        // It has waited for the driver.
        let device = counted.device.unwrap();
        assert!(device.starts_with("opencl:0 on the CPU: pthread"), "{device}");
    }
}

/// Runs `openssl enc` on `len` bytes, with an empty cache of the driver, and returns its counts.
fn encipher(folder: &Path, settings: &str, len: usize) -> (std::process::Output, Statistics) {
    let table = SharedTable::new().unwrap();
    let input = Numbers(5).bytes(len);
    fs::write(folder.join("in"), &input).unwrap();
    let modules = Modules::new(
        OpenSsl::System,
        &format!("statistics = {}\n{POCL}\n{settings}", table.setting()),
    );
    let run = |mut command: Command, out: &str| {
        command.args(["enc", "-aes-256-ctr", "-K", &"11".repeat(32), "-iv", &"22".repeat(16)]);
        command.arg("-in").arg(folder.join("in")).arg("-out").arg(folder.join(out));
        command.env("POCL_CACHE_DIR", folder).stdin(Stdio::null()).output().unwrap()
    };
    let ran = run(modules.command("openssl"), "ours");
    assert!(run(Command::new("openssl"), "theirs").status.success());
    let [ours, theirs] = ["ours", "theirs"].map(|name| fs::read(folder.join(name)).unwrap());
    assert!(ours == theirs);
    (ran, table.read().unwrap().swap_remove(0))
}

/// The master loads the provider and forks; the workers open the device, each for itself.
#[test]
fn workers_of_nginx_open_the_device_for_themselves() {
    if !has_pocl("workers_of_nginx") {
        return;
    }
    for (suite, settings) in [
        ("ECDHE-RSA-AES256-GCM-SHA384", "threshold = 32768"),
        ("ECDHE-RSA-AES256-SHA384", "threshold = 32768\npaper_mode = 1"),
        ("ECDHE-RSA-AES128-SHA256", "threshold = 32768"),
    ] {
        let Some(site) = Site::with_settings(OpenSsl::System, &format!("{POCL}\n{settings}"))
        else {
            return;
        };
        site.let_others_in();
        let options = format!("ssl_ciphers {suite}; ssl_conf_command Options -EncryptThenMac;");
        // nginx takes its environment from a worker, and waits for the children of PoCL.
        let cache = site.path("cache");
        fs::create_dir(&cache).unwrap();
        compile_into(&cache);
        let processes = format!(
            "master_process on; worker_processes 2; env PATH; env POCL_CACHE_DIR={};",
            cache.display()
        );
        let server = site.nginx_with(true, &processes, &options);
        let master = u64::from(server.process.id());
        let accelerated = || {
            let all = site.processes();
            let workers = all.iter().filter(|one| one.process != master);
            workers.map(|one| one.lane(Lane::Accelerator).calls).sum::<u64>()
        };
        wait_until(&format!("a worker uses the device for {suite}"), || {
            for page in PAGES {
                site.fetch(&server, false, page, TLS_1_2);
            }
            accelerated() > 0
        });
        let before = accelerated();
        for page in PAGES {
            site.fetch(&server, false, page, TLS_1_2);
        }
        let all = site.processes();
        let sum = |of: &dyn Fn(&Statistics) -> u64| all.iter().map(of).sum::<u64>();
        assert!(sum(&|one| one.times(Event::Absent)) > 0, "{suite}: a page waited for a driver");
        assert_eq!(sum(&|one| one.times(Event::Fault)), 0, "{suite}");
        let is_gcm = suite.contains("GCM");
        use statistics::Path::{CompositeMultiblock, GcmMultiblock};
        let many = if is_gcm { GcmMultiblock } else { CompositeMultiblock };
        assert!(site.counted(many).calls > 0, "{suite}");
        // A page of 2 MiB is 17 writes; another worker may have got it, whose device is not open.
        let more = accelerated() - before;
        let absent = sum(&|one| one.times(Event::Absent) + one.times(Event::Timeout));
        assert!(more + absent >= 17, "{suite}: {more} by the device");
        assert_eq!(
            sum(&|one| u64::from(one.process == master) * one.lane(Lane::Accelerator).calls),
            0
        );
    }
}

/// Has another process compile all kernels, and makes them readable for all users.
fn compile_into(cache: &Path) {
    let (ran, counted) = encipher(cache, "threshold = 1000", 1 << 20);
    assert!(ran.status.success(), "{ran:?}");
    assert!(counted.device.is_some_and(|device| device != "opencl"), "it is not open");
    let changed = Command::new("chmod").args(["-R", "a+rwX"]).arg(cache).status();
    assert!(changed.unwrap().success());
}

/// A server in whose environment PoCL would end the process: the CPU serves.
#[test]
fn a_worker_without_a_linker_serves_without_the_device() {
    if !has_pocl("a_worker_without_a_linker") {
        return;
    }
    let Some(site) = Site::with_settings(OpenSsl::System, &format!("{POCL}\nthreshold = 32768"))
    else {
        return;
    };
    site.let_others_in();
    let server = site.nginx_with(
        true,
        "master_process on; worker_processes 1;",
        "ssl_ciphers ECDHE-RSA-AES256-GCM-SHA384;",
    );
    let counted = |of: &dyn Fn(&Statistics) -> u64| {
        let all = site.processes();
        all.iter().map(of).sum::<u64>()
    };
    for _ in 0..8 {
        for page in PAGES {
            site.fetch(&server, false, page, TLS_1_2);
        }
    }
    assert!(counted(&|one| one.times(Event::Absent)) > 0);
    assert_eq!(counted(&|one| one.lane(Lane::Accelerator).calls), 0);
    let said = fs::read_to_string(site.path("tmp/error")).unwrap_or_default();
    assert!(!said.contains("exited on signal"), "{said}");
}

/// The module asks for no library of a driver's, and none of OpenSSL's.
#[test]
fn the_module_is_linked_to_no_driver() {
    if !OpenSsl::System.has("readelf") {
        return;
    }
    let modules = Modules::new(OpenSsl::System, "");
    let module = fs::canonicalize(modules.path().join("wattlock.so")).unwrap();
    let read = Command::new("readelf").arg("-d").arg(module).output().unwrap();
    assert!(read.status.success());
    let text = String::from_utf8(read.stdout).unwrap();
    let needed: Vec<&str> = text.lines().filter(|line| line.contains("(NEEDED)")).collect();
    assert!(needed.iter().any(|line| line.contains("libc.so")), "{text}");
    for library in ["OpenCL", "cuda", "crypto", "ssl"] {
        assert!(needed.iter().all(|line| !line.contains(library)), "{needed:?}");
    }
}
