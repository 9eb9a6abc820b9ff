//! Which shard of a run this process does: as its user says, or as the scheduler that started it.

use wattlock_file::Shard;

/// Reads the value of `--shard`: "3/16", "auto" or "auto/16".
///
/// # Errors
/// What is wrong with it, or with the environment.
pub(crate) fn parse_shard(text: &str) -> Result<Shard, String> {
    let variable = |name: &str| std::env::var(name).ok();
    shard(text, &variable)
}

/// The same, with the variables of an environment.
fn shard(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Shard, String> {
    let number = |text: &str| text.parse::<u32>().map_err(|_| FORM.to_owned());
    match text.split_once('/') {
        None if text == "auto" => scheduled(variable)?.shard(None),
        Some(("auto", count)) => {
            let count = number(count)?;
            Shard::new(1, count).ok_or_else(|| FORM.to_owned())?;
            scheduled(variable)?.shard(Some(count))
        }
        Some((index, count)) => {
            let (index, count) = (number(index)?, number(count)?);
            Shard::new(index, count)
                .ok_or_else(|| format!("there is no shard {index} of {count}; the first is 1"))
        }
        None => Err(FORM.to_owned()),
    }
}

const FORM: &str = "a shard is I/N such as 3/16, auto, or auto/N";

/// What a scheduler says of this process.
struct Scheduled {
    by: &'static str,
    /// The first is 0.
    index: u32,
    /// Unknown to some schedulers.
    count: Option<u32>,
    /// The number of the first task of an array, which may be another than 0.
    first: u32,
}

fn scheduled(variable: &dyn Fn(&str) -> Option<String>) -> Result<Scheduled, String> {
    let number = |name: &str| match variable(name) {
        None => Ok(None),
        Some(text) => match text.parse::<u32>() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(format!("the variable {name} is {text:?}, and not a number")),
        },
    };
    if let Some(index) = number("SLURM_ARRAY_TASK_ID")? {
        let first = number("SLURM_ARRAY_TASK_MIN")?.unwrap_or(0);
        let last = number("SLURM_ARRAY_TASK_MAX")?;
        let count = number("SLURM_ARRAY_TASK_COUNT")?;
        // Tasks that are started again, alone or some of them, do not know how many there were at first.
        let has_gaps =
            last.zip(count).is_some_and(|(last, count)| last.abs_diff(first) + 1 != count);
        let count = count.filter(|count| !has_gaps && first <= 1 && *count > 1);
        return Ok(Scheduled { by: "Slurm", index, count, first });
    }
    if let Some(index) = number("AWS_BATCH_JOB_ARRAY_INDEX")? {
        let count = number("AWS_BATCH_JOB_ARRAY_SIZE")?;
        return Ok(Scheduled { by: "AWS Batch", index, count, first: 0 });
    }
    if let Some(index) = number("JOB_COMPLETION_INDEX")? {
        return Ok(Scheduled { by: "Kubernetes", index, count: None, first: 0 });
    }
    Err("auto needs a Slurm array, an AWS Batch array job or a Kubernetes indexed job; use I/N"
        .to_owned())
}

impl Scheduled {
    /// The shard, with the number of shards that the user gave or else the scheduler's.
    fn shard(&self, given: Option<u32>) -> Result<Shard, String> {
        let Self { by, index, count, first } = *self;
        let (index, count) = match (given, count) {
            // The same for a task that is started again alone, in an array of one.
            (Some(given), _) => (index, given),
            (None, Some(count)) => (index - first.min(index), count),
            (None, None) => {
                return Err(format!(
                    "{by} does not say how many shards there are; use auto/N, for tasks 0 to N-1"
                ));
            }
        };
        let shard = index.checked_add(1).and_then(|index| Shard::new(index, count));
        shard.ok_or_else(|| {
            format!(
                "{by} task {index} is none of {count} shards: they are tasks 0 to {}",
                count - 1
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, variables: &[(&str, &str)]) -> Result<String, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        shard(text, &variable).map(|shard| shard.to_string())
    }

    #[test]
    fn a_user_says_which() {
        assert_eq!(of("3/16", &[]).unwrap(), "3/16");
        assert_eq!(of("1/1", &[]).unwrap(), "1/1");
        for wrong in
            ["0/4", "5/4", "1/0", "3", "/", "a/b", "-1/4", "1/4/2", "auto/0", "automatic", ""]
        {
            assert!(of(wrong, &[]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn schedulers_say_which() {
        let slurm = |id, min, max, count| {
            [
                ("SLURM_ARRAY_TASK_ID", id),
                ("SLURM_ARRAY_TASK_MIN", min),
                ("SLURM_ARRAY_TASK_MAX", max),
                ("SLURM_ARRAY_TASK_COUNT", count),
            ]
        };
        assert_eq!(of("auto", &slurm("0", "0", "15", "16")).unwrap(), "1/16");
        assert_eq!(of("auto", &slurm("16", "1", "16", "16")).unwrap(), "16/16");
        assert_eq!(of("auto/16", &slurm("15", "0", "15", "16")).unwrap(), "16/16");
        let batch = [("AWS_BATCH_JOB_ARRAY_INDEX", "2"), ("AWS_BATCH_JOB_ARRAY_SIZE", "3")];
        assert_eq!(of("auto", &batch).unwrap(), "3/3");
        let kubernetes = [("JOB_COMPLETION_INDEX", "0")];
        assert_eq!(of("auto/8", &kubernetes).unwrap(), "1/8");
        assert!(of("auto", &kubernetes).unwrap_err().contains("auto/N"));
        assert!(of("auto", &[]).unwrap_err().contains("Slurm"));
    }

    /// Task 5 alone is not all of the work.
    #[test]
    fn a_task_that_is_started_again_alone_needs_the_number() {
        let alone = [
            ("SLURM_ARRAY_TASK_ID", "5"),
            ("SLURM_ARRAY_TASK_MIN", "5"),
            ("SLURM_ARRAY_TASK_MAX", "5"),
            ("SLURM_ARRAY_TASK_COUNT", "1"),
        ];
        assert!(of("auto", &alone).unwrap_err().contains("auto/N"));
        assert_eq!(of("auto/16", &alone).unwrap(), "6/16");
        let gaps = [
            ("SLURM_ARRAY_TASK_ID", "3"),
            ("SLURM_ARRAY_TASK_MIN", "1"),
            ("SLURM_ARRAY_TASK_MAX", "7"),
            ("SLURM_ARRAY_TASK_COUNT", "2"),
        ];
        assert!(of("auto", &gaps).is_err());
        assert!(of("auto/3", &alone).unwrap_err().contains("task 5"));
        assert!(of("auto", &[("SLURM_ARRAY_TASK_ID", "x")]).is_err());
    }
}
