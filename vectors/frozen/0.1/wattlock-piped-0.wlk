wattlock/v1
-> X25519 F/JMFxeShuuXXLvKO9rYLIl5VFk7KcqN0mv9u1sMCWI
gDy2tXdyVb9qk2E7M/K3YsXGB3Fx+RHaxE/DWQUgFAQ
=> data-key lQ9lbKBZTVeAAr9r0Nczlw
BA2Pk6sfklusVyBbm7+fc20Ryl1OeuTyV7akIBWDGLA65hensMsSaBmVjipV8BBv

=> metadata wILydzp5Rrg2L91OqrSo3w
Y1jIQistSmA7cmv8rWwhhA
--- 5OcAtPLLAV+DOokWSyUiinuffsGB4Ya04HO6SuqcmYY
ñç‚
}ž]†LÓUI1j[;×Ö#wÁáÞš´ƒ}mk>Qç¸lzhê'xí<wØŒt‘lÞ&xß¡›=ÑpL†îvØ