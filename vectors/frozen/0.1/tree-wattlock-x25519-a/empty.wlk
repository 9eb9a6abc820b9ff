wattlock/v1
-> X25519 WvpS47VrzPUizlT23rXuyshgiFCQLbpsMVI+PWU/KnE
PYyosnuhz1D6AqdzzVjVmFLnEL2eCXGZBwkHqvbphkg
=> data-key w8fO5CT5d5qiCI19Akz7kQ
+U4oN3L+ihtKinLkqRMXYgABDX9LPbXDcrj8iVhvUcd9a1EqRXTBnua517t0YyLV

=> metadata 8agSAQ5GVRLiFOBxYdg9vg
wo3VrhNytnfZSaIJzzS+611AldOx4R1fXmBFnV7cFF91Q44VgXsxw1FDdkoItXeu
x6ThPOdrtSAXBQaNIWH8E+rGeFb/FTp0b+1WRvep/ac
--- 3qIepjNTfOBP2xygZxCE3hiboq3m80cpiUBVPCQlmuQ
ã?2ì8þ,OlAK3d•?6ñ?3'æÁ³Iö|•ÉUçF‡=oÅ«Äè—†7ú2ä¬Þi§uùÇq‘.¥C´²…