//! How a program begins: its name, and what keeps its keys in its own memory.

use std::sync::OnceLock;

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};

static NAME: OnceLock<&str> = OnceLock::new();

/// The limit of core files that the program was started with.
static CORE_LIMIT: OnceLock<Rlimit> = OnceLock::new();

/// Begins the program `name`, with which its messages begin; call it first in `main`.
///
/// Whatever the command does later, its memory may hold keys. So the process writes no core file
/// and hands none to the program of `core_pattern`, and other processes of the same user can
/// neither trace it nor read its memory. The limit of core files is lowered, too: a command that
/// the program starts for a key (an age plugin, `--identity-command`) inherits the limit alone.
pub fn start(name: &'static str) {
    let _ = NAME.set(name);
    // Linux refuses neither; a sandbox that does leaves things as they were.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let limit = *CORE_LIMIT.get_or_init(|| getrlimit(Resource::Core));
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), ..limit });
}

/// Lets commands that the program starts open its files by `/proc/PID/fd`, which Linux keeps from all but
/// root while a process is not dumpable. For commands that hold no key of a user.
pub fn let_children_open_files() {
    let _ = set_dumpable_behavior(DumpableBehavior::Dumpable);
}

/// Gives the commands that are started from now on the limit of core files that this program was
/// started with: the command of a user is not to notice that Wattlock runs it.
pub(crate) fn restore_core_limit() {
    if let Some(limit) = CORE_LIMIT.get() {
        let _ = setrlimit(Resource::Core, *limit);
    }
}

/// Returns the name of the program.
pub fn name() -> &'static str {
    NAME.get().copied().unwrap_or("wattlock")
}
