//! Measures the forms of the listing, to find out what an extended block saves: the call, the
//! instructions, or the wait of one block for another.

use wattlock_engine::crypto::roofline;

use super::count::Counter;
use super::form::Form;
use super::rows::LISTING;
use crate::bench::lab::Lab;
use crate::bench::rates::{Buffer, Case, Contender, Effort, measure};

/// Measures all forms in turns on a message of `len` bytes, and counts their instructions.
pub fn measure_forms(lab: &mut Lab<'_>, effort: Effort, megabytes: usize, len: usize, quick: bool) {
    let first = lab.results.rows.len();
    for form in Form::ALL {
        tell!("{}", form.case(megabytes));
    }
    let mut buffer = Buffer::new(len);
    let contenders =
        Form::ALL.map(|form| Contender::new("wattlock", form.work()).kernel(LISTING).threads(1));
    let case = Case { name: String::new(), call_bytes: len };
    lab.measure(effort, &case, buffer.bytes(), contenders.into());
    let clock = clock_ghz(effort);
    for (form, row) in Form::ALL.into_iter().zip(&mut lab.results.rows[first..]) {
        row.case = form.case(megabytes);
        row.cycles_per_byte =
            clock.map(|clock| clock * row.cpu_ns.median as f64 / row.bytes as f64);
    }
    match Counter::find() {
        Ok(counter) if quick => count(lab, counter, first, &COUNTED_QUICKLY),
        Ok(counter) => count(lab, counter, first, &COUNTED),
        Err(why) => lab.results.skipped.push(why),
    }
}

fn count(lab: &mut Lab<'_>, counter: Counter, first: usize, forms: &[(Form, usize)]) {
    lab.results.settings.insert("instructions_by".to_owned(), counter.name().into());
    for &(form, bytes) in forms {
        tell!("instructions of {}", form.name());
        let at = Form::ALL.into_iter().position(|other| other == form).unwrap_or_default();
        match counter.per_byte(&form.name(), bytes) {
            Ok(count) => lab.results.rows[first + at].instructions_per_byte = Some(count),
            Err(why) => {
                let why = format!("instructions of {}: {why:#}", form.name());
                lab.results.skipped.push(why);
            }
        }
    }
}

/// The clock, by a chain of multiplications.
fn clock_ghz(effort: Effort) -> Option<f64> {
    const TURNS: u64 = 100_000;
    let cycles = roofline::cycles(TURNS)?;
    let mut contender = Contender::new("clock", |_| {});
    contender.run = Box::new(move |_| {
        roofline::cycles(TURNS);
        cycles
    });
    let case = Case { name: "clock".to_owned(), call_bytes: 0 };
    let effort = Effort { sample_ns: 2_000_000, ..effort };
    let rows = measure(effort, &case, &mut [], vec![contender]);
    rows.first().map(|row| row.bytes as f64 / row.cpu_ns.median.max(1) as f64)
}

/// Those whose instructions are counted in a quick look.
const COUNTED_QUICKLY: [(Form, usize); 1] = [(Form::Called(16), 16)];
/// Those whose instructions are counted, and on how many bytes.
const COUNTED: [(Form, usize); 6] = [
    (Form::Called(16), 512),
    (Form::Inlined, 512),
    (Form::Chained(16), 512),
    (Form::Called(1024), 1024),
    (Form::Chained(1024), 1024),
    (Form::Linked(1024), 1024),
];
