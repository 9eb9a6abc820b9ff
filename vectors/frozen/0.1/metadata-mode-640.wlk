wattlock/v1
-> X25519 BAzPEUiQHPt8zxHGFQF++cEhuihj/LzbVjfzjukIl2Y
C9ARpK1f/3keqaZLTcwykajYilZXhi8geSjEdluw+VE
=> data-key hd1dxQ6UN5jJmgLde/IZsQ
eSb/tyOtuFLn7l9XIEyiWPLXWCIGTJBApbdbv4JWeOOPCx/nccrVHbr0eNpUOI+U

=> metadata 51W6B4jgvMjpwfqZJxFfEQ
op+tqS9avMDKZLHB4I+qucolvsJd/zYXnLOX3w4xVNpFCxqipuTkwbDli7lWKls7
zPZuGlCCMmJIs/y2/l1ygjitUoRvYekwDMxy9ch8bs4
--- i5BBKjTjEJmyXkNGz0XbOnBdaVvtkOJlBBIJQ7S9DU4
&œ„ü0”O˜–oÜ\é_qõw:æyŠñÆ<.DÅvü­YñáÚ)/t”Ís×z]p/W¸{V3þÆ¤;lÆU\‰4÷N‘T¤p¸Hòô]eµË‘.KFÚYnVXÐ0Í
ôÃ*66‚y Á*KÕ¦û½èk°ÔÈ·SçÐkœ7^Ui¦#¹
Û%Ú5œ¤ïÉJvd6íÉáI;w·ÜÞÎW¶¥ØH{ù³