wattlock/v1
-> X25519 zFV2BOPEoOplckddQ0x2fAbAhBrXAH4MmoBxZfkIXQc
V4brnnCqutotPygmWkTPi+pnjZT1PQ3/xxU/1CTq8Iw
=> data-key NJtIohdgwi5hJV8ATDBeJw
HpyvC/C3n9kX8aeO8DVFpoMrpl7aqtKZVOJI2h7NeRCjg8nvG4U1yalc3S97UuKi

=> metadata rVEsDclVglQvr9VvBBwyAw
iJ03BPuVpwwqgS1JD/y/+Lx9SVeVNH44uhZETngsoyDz+/Parl+LqidJlaAGrjBr
OIpZ9Dm/Z6aAL0hxZRhWmY3ttu9ysmkeJUtufRCLmJo
--- LJIW6yX5+/WuFinhxg9SBrMTP262aoTLaNSFADRdwkI
p_~ˆºNn¢¸ã!bRFtºO„ÏßÈBNYè(ö-%ï‰2ý3éØ³è”î!Æ£²®ì"C¿‰vº#ódÆ¨
.w-òULÖDÌU™l¹‰£:V£‘‘o#ªk)JŸ!+AVœu‹]WÕÜ´víe¯ÙsíÙþ>WËý‹í7—&à