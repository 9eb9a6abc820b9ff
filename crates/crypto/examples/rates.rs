//! scratch
use std::time::Instant;
use wattlock_crypto::*;
fn gbs(bytes: usize, mut f: impl FnMut()) -> f64 {
    let mut v = vec![];
    let reps = (4_000_000 / bytes).max(1);
    for _ in 0..21 {
        let t = Instant::now();
        for _ in 0..reps {
            f()
        }
        v.push((bytes * reps) as f64 / t.elapsed().as_nanos() as f64);
    }
    v.sort_by(f64::total_cmp);
    v[10]
}
fn main() {
    for k in AesKernel::all() {
        for kl in [16, 32] {
            let key = AesKey::new(k, &vec![7; kl]).unwrap();
            if let Some(b) = k.register_bound(kl / 4 + 6, 1) {
                println!(
                    "{} {} bound {:.2}",
                    k.name(),
                    kl * 8,
                    gbs(b as usize * 1000, || {
                        k.register_bound(kl / 4 + 6, 1000);
                    })
                );
            }
            for len in [1024, 16384, 1 << 20] {
                let mut b = vec![1u8; len];
                let c = gbs(len, || key.ctr(&[3; 16], 0, &mut b));
                let e = gbs(len, || key.ecb_encrypt(&mut b).unwrap());
                let ed = gbs(len, || key.ecb_decrypt(&mut b).unwrap());
                let cd = gbs(len, || key.cbc_decrypt(&[1; 16], &mut b).unwrap());
                let ce = gbs(len, || key.cbc_encrypt(&[1; 16], &mut b).unwrap());
                println!(
                    "{} {} {len}: ctr {c:.2} ecb {e:.2} ecbd {ed:.2} cbcd {cd:.2} cbce {ce:.2}",
                    k.name(),
                    kl * 8
                );
            }
            for lanes in [8, 16, 32] {
                let stride = 16384 + 64;
                let mut b = vec![1u8; stride * lanes];
                let r = gbs(16384 * lanes, || {
                    let mut recs: Vec<_> = b
                        .chunks_mut(stride)
                        .map(|c| CbcRecord { iv: [1; 16], in_out: &mut c[..16384] })
                        .collect();
                    key.cbc_encrypt_records(&mut recs).unwrap()
                });
                println!("{} {} lanes {lanes}: {r:.2}", k.name(), kl * 8);
            }
        }
    }
}
