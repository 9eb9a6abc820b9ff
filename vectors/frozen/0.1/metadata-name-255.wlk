wattlock/v1
-> X25519 YK6ZZnPoXiSQtEoTx1uzWTavTCYV9La7XJc5bCHF9kc
9qAyBTErxBVYeV6hLpkWz6QYcNCNW4t5dGLZCxscqJg
=> data-key 5vAPaSRDuabGl6LwVfQ6Ag
rvIaLtcE1bvnfxP8uyillkVH3HZFj3mwokaLOpyk8SKuKPH7B+nOfWOYkndXDeMp

=> metadata XVjfzYFOmeBB10A5Gb+vlw
r6AnSzTgNsDpsGw4E/jvDu6M/e/Lw0n8W3uIsysAD53jEQFZLhi2tbyl2/3iR5ne
Qp857eOMuWbikUOZ/t9HQlY3gzV15j4ei2ikf+SRqtLCTJAhtijjUW+OyiYLflk+
g0jFXyNkC+jeMZOwaZ3Fca8zcHsKYFWATdKoSMw3Kwkej5XDLFFhgPatZedm9bcE
pImRPSY2qAwnjTZbHDtuOtCh8pGBpYCorQrHeWkmPS4JykGa/5nNcsyNWaHE9L1N
9VbKY07WAVGJabIBaK810M4GJqFknF2LdBfYEbluAmMKHZLw4ssXaVAgPmmH+Z/M
W84J3ZNtoiYPuqnWFp96u+h7QxoL6wgZki+oTblHf/Lc0hMvNmlYwkWm3vn4pSOK
KHIpJplJS58/d0znvD4YWmXCjnFoQedEMMr9gBEARIV6XZLDpgzyqHcx3DEwPonD

--- VN4Cgg8ZShDNTxr1fiIeIXzgRa4OyhO2sQQD2qpOH6c
DÙsÇÀ³€´Ýx	£½Éà	]r¨¾	Ã	º8³Ôo2#e4´—‚‰«ãÖ¨èªQ'“¬Ö–>a€²cÜ®u>g€28b8®Oõ‘8Ó+ÚX/ÈÐã‘Í¦Ã>š¾ûš) X®ÅTÝqàD`37ñnÑŸ™œõ#Ö'Ý{D®ß,Îåcôû–¦†å“™g«äÀ.{o	‘±öƒ˜×ÄIåÊ5´ýM