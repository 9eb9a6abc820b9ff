wattlock/v1
-> X25519 8nhrYAjFGaxg9mL9lSNtsv9fnDSSNjcr4Vk4MUTOaxk
ZaDd8u8P1ouAKBXERxOBQI1MsYs8FN43wXpqBLKymfU
=> data-key PdxhdbN1LPW2UXHW9lHW8w
9CpdIlxuGLkYTOzm3fYASiSjDYECTCvcRZWf2YufDXdqfxphHJnj49jIZ1rcQhDb

=> metadata U7wVRTf4uKb6wBzrIe/IrQ
UZSg5x19nrxj656nbndQIsZJBs5i6ZwjL5xnqw5hUs0WW/c6xHT3fp5Cg6onIDAs
OZX/4sTdqSJ2Lk5OGwuYpk8BXOHCToNE6uFYGVP6T1Y
--- OVZtvKXzIDK4rb19qknJ1AnvuDc0Tfh+q/dQM1okSUk
ΦΈg±*3ΐmχejTVeU]zmZ
•¨jª4D΄z‘ϋύτζΠ!Γ²1Z¨ι{³οθ†ψ¤w¨ε‹„Ξ¥ή}ί•g