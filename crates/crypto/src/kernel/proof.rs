//! How proof tokens are made, and which features of the CPU the kernels use.

/// A feature of the CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CpuFeature {
    /// Its name in Rust.
    pub name: &'static str,
    /// True if this CPU has it, and the system saves its registers.
    pub here: bool,
    /// The kernels that need it, by name, or what else uses it.
    pub used_by: String,
}

/// The features of this architecture that kernels need, or that AWS-LC uses, each once.
pub fn cpu_features() -> Vec<CpuFeature> {
    let mut features: Vec<CpuFeature> = Vec::new();
    for (name, here, user) in super::cpu::features().into_iter().chain(super::cpu_arm::features()) {
        match features.iter_mut().find(|feature| feature.name == name) {
            Some(feature) if feature.used_by.split(", ").any(|other| other == user) => {}
            Some(feature) => feature.used_by += &format!(", {user}"),
            None => features.push(CpuFeature { name, here, used_by: user.to_owned() }),
        }
    }
    features
}

/// A token as [`proofs`] lists it: its name, that of the token it builds on, its features, each here or not,
/// and its kernels.
pub(super) struct Listed {
    pub proof: &'static str,
    pub base: &'static str,
    pub features: &'static [(&'static str, fn() -> bool)],
    pub kernels: &'static [&'static str],
}

/// The features of each token with each kernel that needs it: those of tokens that build on it, too.
pub(super) fn users(listed: &[Listed]) -> Vec<(&'static str, bool, &'static str)> {
    let mut users = Vec::new();
    for needed in listed {
        let tokens = listed.iter().filter(|token| builds_on(listed, token, needed.proof));
        let kernels: Vec<_> = tokens.flat_map(|token| token.kernels).collect();
        for (feature, here) in needed.features {
            users.extend(kernels.iter().map(|kernel| (*feature, here(), **kernel)));
        }
    }
    users
}

/// A token that proves what another builds on.
pub(super) trait Proof: Sized {
    /// The token, where the CPU has the instructions.
    fn found() -> Option<Self>;
}

/// Nothing is needed.
impl Proof for () {
    fn found() -> Option<Self> {
        Some(())
    }
}

/// True if `token` is that of the name `base`, or builds on it.
fn builds_on<'a>(listed: &'a [Listed], mut token: &'a Listed, base: &str) -> bool {
    while token.proof != base {
        match listed.iter().find(|other| other.proof == token.base) {
            Some(below) => token = below,
            None => return false,
        }
    }
    true
}

/// Makes a token of each line, with `detect`, and `features`, which lists what the CPU is asked for.
macro_rules! proofs {
    (
        on $arch:tt;
        $(
            $(#[$doc:meta])*
            struct $proof:ident($base:ty): [$($feature:tt),+], $needs:literal,
                for [$($kernel:literal),+];
        )+
        others { $($other:tt: $user:literal,)* }
    ) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $proof($base);

            impl $proof {
                /// What the CPU has to have, for errors.
                pub(crate) const NEEDS: &str = $needs;

                /// The token, where the CPU has the instructions and the system saves the registers.
                pub fn detect() -> Option<Self> {
                    let found = $($crate::kernel::proof::detected!($arch, $feature))&&+;
                    <$base as $crate::kernel::proof::Proof>::found().filter(|_| found).map(Self)
                }
            }

            impl $crate::kernel::proof::Proof for $proof {
                fn found() -> Option<Self> {
                    Self::detect()
                }
            }
        )+

        /// The features that are asked for, as often as they are: here or not, and for what. None on
        /// another architecture.
        pub(super) fn features() -> Vec<(&'static str, bool, &'static str)> {
            if !cfg!(target_arch = $arch) {
                return Vec::new();
            }
            let mut features = $crate::kernel::proof::users(&[$(
                $crate::kernel::proof::Listed {
                    proof: stringify!($proof),
                    base: stringify!($base),
                    features: &[$(
                        ($feature, || $crate::kernel::proof::detected!($arch, $feature)),
                    )+],
                    kernels: &[$($kernel),+],
                },
            )+]);
            $(features.push((
                $other,
                $crate::kernel::proof::detected!($arch, $other),
                $user,
            ));)*
            features
        }
    };
}
pub(super) use proofs;

/// Whether the CPU has the feature; false on another architecture than the one named.
macro_rules! detected {
    ("x86_64", $feature:tt) => {{
        #[cfg(target_arch = "x86_64")]
        let here = std::arch::is_x86_feature_detected!($feature);
        #[cfg(not(target_arch = "x86_64"))]
        let here = false;
        here
    }};
    ("aarch64", $feature:tt) => {{
        #[cfg(target_arch = "aarch64")]
        let here = std::arch::is_aarch64_feature_detected!($feature);
        #[cfg(not(target_arch = "aarch64"))]
        let here = false;
        here
    }};
}
pub(super) use detected;
