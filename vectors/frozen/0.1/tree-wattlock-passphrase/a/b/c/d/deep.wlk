wattlock/v1
-> scrypt 2XRSptXTx5eN2mgVqYqB+g 10
38Dg5f3T5WV8Nhsu0vx+16mDxeAe561iehiazm/9KZg
=> data-key pdDV/pUl/X/h76lCEwPpJw
f73vx2H8W5fkqgGPXAzA9pGygKWwFpixZ5dJ1FPorni6P0ey6KyOEajDtpomN4Ix

=> metadata iGJnINuw+mFjrr3cF/tIYA
nUIQMdksRr3WRG+dfwgLJ86DcEgBigeJV6VXw/nqli2qfyiQmVNass0/ykC7er3F
lgN/a6RdBajwjv10diMkunESP5g73J4+UsGLfI5MLmI
--- KJ/pK4/MMegg5UR+krjrHjvBUCNmN4FotY7ly9luEZw
×·`/Äiù®>×·Òÿ”‹uh	oZ›?²†biF¾ßüãí‘Î½;t•üL=L’réÁðZ ¢?ØÛí›Ï‰mÊ­{yH‚‘‡§c4~ŒÆGÙ×ùjÆ+Û"t_ü&iì“­K[+³aÏ¿Œ yFäH2[dä7pNJ3Õ Lº:Ø^Å]øò…^‚Rà°\=KU÷³SØÊ3âUý‰Ñ