"""What else a version leaves on a disk: journals of clocks, profiles, and documents of results."""

import json
import os
import signal
import subprocess
import threading
import time

from corpus import content

BOOT = "0b0e5a3c-7d1f-4a57-9a36-6f1f0a4c2d10"
POLICY = "sys/devices/system/cpu/cpufreq/policy"
CLOCKS = {
    "cpuinfo_min_freq": "800000", "cpuinfo_max_freq": "3600000", "scaling_min_freq": "800000",
    "scaling_available_frequencies": "3600000 2000000 800000", "scaling_max_freq": "3600000",
    "scaling_driver": "acpi-cpufreq", "scaling_governor": "schedutil",
}


def machine(corpus, name):
    """The files of a machine with two policies, as they are before a lease."""
    files = {"proc/sys/kernel/random/boot_id": BOOT}
    files |= {f"{POLICY}{i}/{file}": value for i in range(2) for file, value in CLOCKS.items()}
    root = corpus.scratch / name
    for path, value in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(value + "\n")
    for i in range(2):
        (root / f"{POLICY}{i}/scaling_cur_freq").symlink_to("scaling_max_freq")
    return root, files


def caps(root):
    return [(root / f"{POLICY}{i}/scaling_max_freq").read_text().strip() for i in range(2)]


BENCH = ["bench", "ciphers", "--only", "blowfish", "--rounds", "20000", "--clocks", "low", "--set-clocks"]


def journals(corpus):
    for label, kill in (("set", kill_in_a_lease), ("being-set", kill_in_a_write)):
        root, files = machine(corpus, f"machine-{label}")
        kill(corpus, root)
        text = (root / "run/wattlock/journal.json").read_bytes()
        name = f"journal-{label}.json"
        (corpus.folder / name).write_bytes(text)
        left = dict(zip((f"{POLICY}{i}/scaling_max_freq" for i in range(2)), caps(root)))
        restored = {path: files[path] for path in left}
        corpus.add(name, "journal", f"{corpus.said(BENCH)} # and its guardian: killed",
                   machine=files | left, restored=restored)


def kill_in_a_lease(corpus, root):
    """Kills a program that has set both clocks, and the guardian that would put them back."""
    environment = dict(corpus.environment, WATTLOCK_ROOT=str(root))
    bench = subprocess.Popen(["wattlock-lab", *BENCH], env=environment, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE)
    while b"blowfish" not in bench.stderr.readline():
        assert bench.poll() is None
    bench.send_signal(signal.SIGSTOP)
    children = open(f"/proc/{bench.pid}/task/{bench.pid}/children", encoding="ascii").read().split()
    guardians = [int(pid) for pid in children if b"--guardian" in open(f"/proc/{pid}/cmdline", "rb").read()]
    assert len(guardians) == 1, children
    os.kill(guardians[0], signal.SIGKILL)
    bench.kill()
    bench.communicate()
    assert caps(root) == ["2000000", "2000000"]


def kill_in_a_write(corpus, root):
    """Kills whoever writes the second clock: the program, and then the guardian."""
    path = root / f"{POLICY}1/scaling_max_freq"
    environment = dict(corpus.environment, WATTLOCK_ROOT=str(root))
    command = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", path, "-e", "trace=write",
               "-e", "inject=write:error=EIO:signal=KILL", "wattlock-lab", *BENCH]
    subprocess.run(command, env=environment, capture_output=True, check=False)
    assert caps(root) == ["2000000", "3600000"], caps(root)
    entries = json.loads((root / "run/wattlock/journal.json").read_text())["entries"]
    assert [entry["read_back"] is None for entry in entries] == [False, True], entries


def profiles(corpus):
    cache = corpus.scratch / "cache"
    corpus.run(["calibrate", "--quick"], WATTLOCK_CACHE=str(cache))
    data = (cache / "profiles.json").read_bytes()
    (corpus.folder / "profiles.json").write_bytes(data)
    machines = json.loads(data)["machines"]
    corpus.add("profiles.json", "profiles", ["calibrate", "--quick"], profiles=len(machines[0]["profiles"]))


def documents(corpus):
    simulated = ["--users", "300", "--latency", "100,3000"]
    https = ["--sizes", "16K", "--suites", "ECDHE-RSA-AES256-GCM-SHA384,TLS_AES_256_GCM_SHA384"]
    for label, args in {
        "ciphers": ["bench", "ciphers", "--quick", "--only", "aes-256-gcm"],
        "energy": ["paper", "ciphers", "--quick"],
        "blocks": ["paper", "blocks", "--quick"],
        "files": ["bench", "files", "--size", "256K", "--rounds", "3", "--files", "3", "--file-size", "1000"],
        "sefps": ["bench", "files", "--quick", "--paper", "sefps"],
        "stream": ["bench", "stream", "--quick"],
        "https": ["bench", "https", "--quick", *https],
        "simulation": ["simulate", "lecpaes", *simulated],
        "policies": ["simulate", "policies", "--seconds", "5"],
    }.items():
        args = [*args, "--json", f"results-{label}.json"]
        corpus.run(args)
        corpus.add(f"results-{label}.json", "simulated" if label == "policies" else "results", args)
    measured(corpus)
    summaries(corpus)


def measured(corpus):
    """A measurement by models, one by a meter, and one by counters that are files."""
    note(corpus, "measure-modelled", ["measure", "--json", "--", "sleep", "0.1"], "results")
    meter = ["measure", "--json", "--bytes", "1M", "--meter", "echo 20 W", "--idle-baseline=0.5", "--", "sleep", "1"]
    note(corpus, "measure-meter", meter, "results")
    zone = corpus.scratch / "machine-rapl/sys/class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    for name, value in (("name", "package-0"), ("max_energy_range_uj", "262143328850"), ("energy_uj", "0")):
        (zone / name).write_text(value + "\n")
    done = threading.Event()

    def count():
        begun = time.monotonic()
        while not done.wait(0.002):
            (zone / "next").write_text(f"{int((time.monotonic() - begun) * 20e6)}\n")
            (zone / "next").rename(zone / "energy_uj")
    counter = threading.Thread(target=count)
    counter.start()
    try:
        args = ["measure", "--json", "--repeat", "3", "--bytes", "1M", "--", "sleep", "0.5"]
        note(corpus, "measure-counted", args, "results", cwd=corpus.scratch, WATTLOCK_ROOT="machine-rapl")
    finally:
        done.set()
        counter.join()


def summaries(corpus):
    """What protect, unprotect and stream print with --json."""
    source = corpus.source("summary", content(5000, "summary"))
    container = corpus.scratch / "summary.wlk"
    seal = corpus.keys["x25519-a"]["seal"]
    for label, args in {
        "protect": ["protect", "--json", *seal, "-o", str(container), str(source)],
        "unprotect": ["unprotect", "--json", *corpus.keys["x25519-a"]["open"],
                      "-o", str(corpus.scratch / "again"), str(container)],
    }.items():
        text = corpus.run(args).stdout.decode().replace(f"{corpus.scratch}/", "")
        (corpus.folder / f"summary-{label}.json").write_text(text)
        corpus.add(f"summary-{label}.json", "summary", args)
    args = ["stream", "--json", *seal]
    text = corpus.run(args, data=b"a line\n").stderr
    (corpus.folder / "summary-stream.json").write_bytes(text)
    corpus.add("summary-stream.json", "summary", args)


def note(corpus, name, args, kind, **more):
    """Keeps the last line of standard error, which is a document."""
    line = corpus.run(args, **more).stderr.splitlines()[-1]
    json.loads(line)
    (corpus.folder / f"{name}.json").write_bytes(line + b"\n")
    corpus.add(f"{name}.json", kind, args)
