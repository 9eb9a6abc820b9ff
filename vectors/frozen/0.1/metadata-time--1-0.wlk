wattlock/v1
-> X25519 YdPSVzdCVziuQGv9jab1eWGiUcc6AZn1HI+ZjiFRzhc
DER9PQ696V9x2AcEmdXuq5Ugu7H/chXvl9/uf3tI9r8
=> data-key OGDEbZpx/16rw4QeQd8nIQ
uZpdBBOhrGfTko8MQuCEQRxdRTPImMeVb7Zur4YhPzhF4LlM6DD1R1PXLZG8WqvM

=> metadata Dza4sfbniXNz1Tug3f6J7Q
Grju3WRLMUKJ65n2yT53vxgcD3GseL6y0F1FH89sYEFobiehWmcrzwXkGftlzcja
aYrQ6ppEB44xHzaEe+wWsQSBNBY3+7edttN7rtGvEcU
--- iriixcVz1y6q/z48R3W30QvCQy4ZoX7Q0VABrHoLl18
fÛ+3¶uÓØBá
F}Ðºë›Rv{Ä-Nn«®¥¤î&3ÿùoC!eb3zè>¹G¿„ŒZ¨ÎHv`¨<£&-Qî&kE‘zŒÚÓËiPÇu¡•õ¨ê‰qš	­A{c«È-·Åçœ'·žEù—LŒ²Guª¨{ùÎå×öíêÏMš:Q18¡á‡ž$ŸO4qbÎÐ©7¢©Ká'—¢züð‹ì