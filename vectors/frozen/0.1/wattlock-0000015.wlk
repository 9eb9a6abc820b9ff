wattlock/v1
-> X25519 muO1Z/9dpK+q2wdDiGss19zdORYUmRX3HuPgpVdoIRw
0LvrrJkZPzltd8nVMRId4jocOtPzrum8GIuX85ZujWQ
=> data-key 3+INWomXFeNCIN6CF19QUA
byOszTWEbOrkNXYarCUl++aIg1fpasCo/YjFBWeS6ov0z1nGyPj4/yAf2/gx5rwM

=> metadata i7LFEsH+jWXpaei5D46rAg
i/CtNnTRX1wPTyFXKOG2bIpJBsSF4mt/pcj83Gn1FowOXkXHpoZmnelnz6R/fzFJ
uyAkJBKShpw3sFBiUfVl4AbGbJCZc191ECMO9Fa7ppI
--- +PW5FNRNyZ796jI0LvdN6gSAxf9vDhkQFxOTfJqn2tw
=3û^(šM·@VjGÏwÇ"ãmŒïkc2q€üO¬ÌÕpå¬A‹RÅÕ€<é½Ï¹ž”Žøgà†øb¦3®¬`¬þH`_Îƒ.Y«u	ëÿñŠ0ë–R