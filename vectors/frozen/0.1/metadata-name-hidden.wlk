wattlock/v1
-> X25519 q3v4+/v6o8FQAT8MmGX5nd7lF6J10Q+Y9g8Vddl5OTM
xcE/kuVArw6YDKug44nFRqnSwmBQ6v6nSH9EW7Mw7tA
=> data-key koSYthITcU61l19l0CvVsA
9qe9Ud69xA5KkQax55rdqinZkfVKpsL3vRQqhrQ5W3F4NwNN/CIWgf5MUdabuUOf

=> metadata o3YPUWc1N8/hEhrxjDcgXw
bDwqSsb//KSLjGPPs9pVPiy7BT6hK5q2D9uaRoocBTcIc66Ym6/xWUjhEiDkw+k9
XSiXBtUceSfSASvtQvhyIR5hIISJTI0kn1HH4z0zstY
--- y5MKy2O6VS18mRcefcMvoMkKnfFF8Z0cEIdDYayXxis
¿Ó|(Æfs§»`þ¬•™f³EâjhÊä‘¯“ü5ð°Å¥‹qÌÎÒ
-ûÖAì£¨Ìóàã©çcƒäµ©qƒÆnSþ„yg	O7$SÈÃ±N‹-@éÉZæJ`õ	5è‚û‡ä®f9Ä?‡È©. ÀÆÝî/ºÛdôƒÑÕ¿Ï‹ó2©4qs;{1hÝE¡/ko¶­nî_yò"Pëf‚ÇZÅ{T'